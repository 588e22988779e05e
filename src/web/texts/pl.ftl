# The texts of the website in Polish, in the format of Project Fluent. `$count` is a whole number; what other values are
# is said above a text. A translation has the same texts in its own file.

## Texts of several pages

player = Gracz
players-heading = Gracze
points = Punkty
server = Serwer
servers-heading = Serwery
game = Gra
games-heading = Gry
map = Mapa
maps-heading = Mapy
country = Kraj
address = Adres
rank = Miejsce
week = Tydzień
score = Wynik
sessions = Sesje
last-seen = Ostatnio online
since = Od
share = Udział
hours = Godziny
mean-players = Średnio graczy
player-count = Gracze
nobody = Brak graczy.
none-yet = Jeszcze brak.
no-data-yet = Jeszcze brak danych.
now = teraz
offline = offline
more = Więcej
search = Szukaj
find = Znajdź
# $count of $most, such as 3 of 16 players.
of-most = { $count } z { $most }
# $number may have a decimal, such as 66.7.
percent = { $number }%
# The title of a page: $title is what it shows, $name is that of a server or a game.
title-and-name = { $title }: { $name }
show = Pokaż
tag = Tag
# Where a list of games, tags, players or maps is empty.
none = Brak.
winners-feed = Zwycięzcy każdego tygodnia jako kanał Atom

## Numbers and times

# $minutes has two digits where hours are before it.
minutes-only = { $minutes } min
hours-and-minutes = { $hours } h { $minutes } min
hours-only = { $hours } h
month-1 = sty
month-2 = lut
month-3 = mar
month-4 = kwi
month-5 = maj
month-6 = cze
month-7 = lip
month-8 = sie
month-9 = wrz
month-10 = paź
month-11 = lis
month-12 = gru
weekday-1 = pon
weekday-2 = wt
weekday-3 = śr
weekday-4 = czw
weekday-5 = pt
weekday-6 = sob
weekday-7 = nd
# A day or a period of days: 23 Nov 2026; 23 to 29 Nov 2026; 23 Nov to 2 Dec 2026.
date = { $day } { $month } { $year }
# A day in a table or below a graph: 9 Nov.
short-date = { $day } { $month }
days-of-month = { $first }–{ $day } { $month } { $year }
days-of-months = { $first_day } { $first_month } – { $day } { $month } { $year }
# A week in a table: 23–29 Nov; 30 Nov – 6 Dec.
short-days-of-month = { $first }–{ $day } { $month }
short-days-of-months = { $first_day } { $first_month } – { $day } { $month }

## Rankings

points-for-winning = punkty za wygrywanie
rating = rating
points-unit = zdobyte łącznie
hours-and-minutes-unit = godziny i minuty
time-ranking = Czas
points-per-minute = punkty na minutę
clq1-rewards = Nagradza szybkie zdobywanie punktów: średnia z dziesięciu najlepszych odcinków po 12 minut. Brakujące liczą się jako 0, więc pełny wynik wymaga 2 godzin.
clq1-listed = Aby trafić do rankingu, trzeba grać 12 minut bez przerwy i zdobyć punkty.
clq2-rewards = Nagradza bycie w czołówce na koniec rundy: im więcej graczy niżej, tym więcej punktów; sumuje się dziesięć najlepszych rund.
clq2-listed = Aby trafić do rankingu, trzeba być wśród najlepszych na koniec rundy z co najmniej dwoma graczami.
elo-rewards = Nagradza pokonywanie silnych graczy: na koniec rundy każdy zabiera rating graczom niżej albo sam go traci.
elo-listed = Aby trafić do rankingu, trzeba zagrać z innymi rundę do końca.
points-rewards = Nagradza zdobywanie wielu punktów: liczą się wszystkie.
time-rewards = Nagradza czas na serwerze: liczy się cały, mierzony między dwoma skanami.
seen-playing-listed = Aby trafić do rankingu, wystarczy być w grze podczas skanu.

## The frame of all pages

# Where the operator has set no other title and description.
site-title = Statystyki gier
site-description = Gracze online, rankingi i statystyki serwerów gier.
frame-skip = Przejdź do treści
frame-site = Strona
frame-about = O stronie
frame-search-label = Serwery, gracze, mapy
frame-source = Wszystkie liczby oblicza clqd z publicznych odpowiedzi serwerów gier.
frame-utc = Godziny są w UTC.
frame-how = Jak to działa i jak się wypisać
frame-links = Linki strony
frame-languages = Języki
error-try-again = Spróbuj ponownie za { $seconds } s.
error-first-page = Na stronę główną
# A link with error-running-week follows.
error-window = Z tego okresu nic nie jest przechowywane.
error-running-week = Do bieżącego tygodnia
# A search form follows.
error-player = Ta strona nie zna takiego gracza. Wyszukaj nick:
# A link to all servers follows, as after the next one.
error-server = Ta strona nie zna takiego serwera.
error-server-removed = Ten serwer został usunięty: nie ma go już na liście.
error-not-found = Pod tym adresem nic nie ma. Może jest błędny albo to, co tu było, nie jest już przechowywane.
error-bad-request = Coś w tym adresie jest nieprawidłowe.
problem-bad-request = Nieprawidłowe żądanie
problem-unauthorized = Wymagany token
problem-forbidden = Brak dostępu
problem-not-found = Nie znaleziono
problem-removed = Usunięto
problem-method-not-allowed = Niedozwolona metoda
problem-conflict = Teraz niemożliwe
problem-uri-too-long = Zbyt długi URI
problem-too-many-requests = Zbyt wiele żądań
problem-internal = Błąd wewnętrzny
problem-answer-too-large = Odpowiedź jest zbyt duża
problem-starting = Usługa się uruchamia
problem-stopping = Usługa się zatrzymuje
problem-busy = Usługa jest przeciążona
script-add-favourite = ☆ Dodaj do ulubionych
# Of a button, for 2 seconds after a click on `script-copy`.
script-copied = Skopiowano
# Of a button: to the clipboard.
script-copy = Kopiuj
# Of a button that is pressed: this server or player is a favourite.
script-favourite = ★ W ulubionych
script-favourites = Ulubione
# After the time of a point of a graph, such as "2026-11-23 14:00: no data".
script-no-data = brak danych
# What is suggested while one types a search.
script-suggestions = Podpowiedzi
# "Yours": in the time zone of the visitor.
script-zone = Godziny są w Twojej strefie czasowej; dni i tygodnie w strefie tej strony.

## First page

home-silent = Od { $since } nie odpowiada żaden serwer: sieć tej strony prawdopodobnie nie działa. Do jej powrotu dane są niepełne.
home-busiest = Najpopularniejsze serwery
home-busiest-caption = Serwery, na których jest teraz najwięcej graczy
home-all-servers = Wszystkie serwery
home-played = W co się gra
home-played-caption = Gry, w które gra teraz najwięcej graczy
home-no-server = Żaden serwer nie jest online.
home-all-games = Wszystkie gry
# $week is its days, such as 23–29 Nov; so in home-winners.
home-leaders = Liderzy { $week }
home-provisional = Wyniki wstępne do końca tygodnia.
# $ranking and $unit: CLQ1, points per minute. `clq1-rewards` follows.
home-unit = { $ranking }: { $unit }.
home-no-leaders = Jeszcze brak albo tabele są przygotowywane po starcie.
home-changed = Co się zmieniło
home-over-time = Liczba graczy w czasie
home-closed = Zamknięte tygodnie
home-winners = Zwycięzcy { $week }
home-older-weeks = Starsze tygodnie
home-no-closed = Żaden tydzień nie został jeszcze zamknięty.
home-players-online = Gracze online
home-servers-online = Serwery online
home-known-servers = Znane serwery
home-known-players = Znani gracze

## Page of a player

# A title. $name is the player's name without colours.
player-title = Gracz { $name }
player-description = Gracz { $name } w { $game }: sesje, tygodnie i najlepsze pozycje.
player-first-seen = Pierwszy raz online
# Instead of a time, after Last seen.
player-playing-now = gra teraz
# $servers is links, with spaces between them.
player-playing-on = Gra teraz na { $servers }
# $game is the name of a game. A table follows: rankings and weeks.
player-rank = Miejsce w { $game }
player-this-week = Ten tydzień
# $names is the player's other names, with spaces between them.
player-merged = Połączono z: { $names }
# $games is links, with spaces between them.
player-same-name = Ten sam nick w innych grach: { $games }
player-weeks = Tygodnie
# The last sentence explains the word that some figures have in their names.
player-weeks-kept = Wszystkie tygodnie, które przechowuje clqd. Wyniki bieżącego tygodnia są wstępne. Szacowane: punkty i czas między dwoma skanami, nigdy nie liczone w rankingach.
player-best-positions = Najlepsze pozycje
# The label of a field for a name.
player-compare-with = Porównaj z graczem
# A button.
player-compare = Porównaj
# $week is its days, such as 23–29 Nov. The position is shown below.
player-best-of-week = Najlepsza pozycja, { $week }
# A position in a ranking of a server, such as #3 CLQ1 on Warfare.
player-position = #{ $position } { $ranking } na { $server }
# The server on which the player was longest is shown below.
player-most-on = Najczęściej na
player-points-counted = Punkty ze wszystkich zapisanych tygodni
player-points-estimated = Punkty, szacowane
player-time-counted = Czas ze wszystkich zapisanych tygodni
# What one clicks to see estimated points and time.
player-estimates = Szacunki
player-time-estimated = Czas, szacowany
# Explains an estimate such as 1,204 ± 30.
player-estimated-meaning = Razem z tym, czego nie widział żaden skan. W czterech przypadkach na pięć prawdziwa wartość różni się najwyżej o drugą liczbę.
# The title of a chart, and its unit: hours in each week.
player-hours-played = Czas gry
player-hours-unit = godziny w tygodniu
# The title of a chart. $ranking is such as CLQ1, $server is a name.
player-ranking-on = { $ranking } na { $server }
# What one clicks to see further charts.
player-more-rankings = Każdy ranking tydzień po tygodniu
player-weeks-caption = Wyniki i pozycje według tygodni i serwerów
player-sure-rounds = Pewne rundy
player-sure-rounds-meaning = Z rund, które liczą się do CLQ2 i ELO, te z pewnym zwycięzcą: skan widział ich koniec
# No week.
player-no-weeks = Brak zapisanych tygodni.
# A link to further weeks on servers.
player-more-weeks = I jeszcze { $count }
# No position.
player-no-positions = Jeszcze brak: pozycje liczą się po zamknięciu tygodnia.
player-best-caption = Najlepsze pozycje w zamkniętych tygodniach
player-more-positions = Więcej pozycji
# The head of a column with the names of rankings, such as CLQ1.
player-ranking = Ranking

## Comparison of two players

compare-two = Porównaj dwóch graczy
compare-search = Wyszukaj jednego z nich: na stronie każdego gracza jest formularz.
# Titles. $a, $b and $player are names of players.
compare-both-names = { $a } i { $b }
compare-one = Porównaj: { $player }
compare-no-player = Żaden gracz nie ma nicku { $name }.
# Which one of the listed players.
compare-which = O którego gracza chodzi?
compare-both = Obaj gracze
# The head of the column with what is compared, for screen readers.
compare-what = Co
compare-ahead = Kto był wyżej
compare-no-week = Brak wspólnego tygodnia na tym samym serwerze.
compare-weeks =
    { $count ->
        [one] { $count } wspólny tydzień na tym samym serwerze.
        [few] { $count } wspólne tygodnie na tym samym serwerze.
        [many] { $count } wspólnych tygodni na tym samym serwerze.
       *[other] { $count } wspólnego tygodnia na tym samym serwerze.
    }
compare-counted = Tydzień liczy się w rankingu, jeśli obaj gracze mają w nim pozycję.
compare-partial = Porównywane są tylko najnowsze tygodnie każdego z nich.
compare-ahead-caption = Ile razy każdy z graczy był wyżej
compare-by-week = Tydzień po tygodniu
compare-by-week-caption = Wyniki, lepsza pozycja pogrubiona
# The newest weeks.
compare-newest = Pokazano najnowsze: { $count }.

## Sessions of a player or on a server

# No session.
sessions-none = Brak zapisanych sesji.
sessions-measured = Od pierwszego do ostatniego skanu, który widział gracza: naprawdę było to o kilka minut dłużej.
sessions-newest = Najnowsze sesje
# Older sessions; the first is what one clicks to see them, the second is the title of their table.
sessions-older = Starsze
sessions-older-caption = Starsze sesje
# More sessions.
sessions-as-json = Więcej jako JSON
# Heads of columns: the time at which a session ended, and how long it was.
sessions-until = Do
sessions-for = Czas
# Instead of a time, of a session that only one scan has seen.
sessions-once = widziany raz
sessions-last-map = Ostatnia mapa
# $players is a list of links with times.
sessions-companions = Gra razem z: { $players }
sessions-days-title = Pory, w których gracz był na serwerze, dzień po dniu
sessions-days-caption = Pory gry, UTC
# $largest is hours and minutes, such as 3:05.
sessions-hours-title = Godziny tygodnia, w których gracz gra. Najwięcej: { $largest } w jednej godzinie tygodnia
sessions-hours-caption = Godziny tygodnia, w których gracz gra, UTC; mocniejszy kolor: dłużej
sessions-players =
    { $count ->
        [one] { $count } gracz.
        [few] { $count } graczy.
        [many] { $count } graczy.
       *[other] { $count } gracza.
    }
sessions-longest = Gracze, którzy byli tu najdłużej
sessions-more-players = Więcej graczy

## Availability of a server

availability-last-days =
    { $count ->
        [one] Ostatni { $count } dzień
        [few] Ostatnie { $count } dni
        [many] Ostatnie { $count } dni
       *[other] Ostatnie { $count } dnia
    }
# $percent is a number, with one decimal at most.
availability-of-hours = { $percent }% godzin
availability-of-days = { $percent }% dni
# A day is shown below.
availability-known-since = Znany od
availability-title = Godziny każdego dnia, w których serwer był online
# $date is such as 2026-11-23; $count is 0 to 24.
availability-day = { $date }: { $count } z 24 godzin
availability-unwatched = { $date }: godziny, w których ta strona nie widziała żadnego serwera: { $hours }
availability-caption = Godziny każdego dnia, w których skan dostał odpowiedź, UTC. Serwer odpytywany raz dziennie jest widoczny w jednej godzinie dnia. Jaśniejsze i nieliczone: godziny, w których sama ta strona nie widziała żadnego serwera.

## Graphs

# In this and the next three texts $title is such as `server-over-32-days`, $unit such as `server-mean-of-an-hour`.
chart-title = { $title }, { $unit }
# $largest is a value, which may have a decimal.
chart-title-largest = { $title }, { $unit }. Najwięcej: { $largest }
chart-title-newest = { $title }, { $unit }. Ostatnio: { $newest }. Najwięcej: { $largest }
# Below a graph; its title is above it.
chart-caption = { $unit }{ $zone }.
# Above a graph: now 12 · peak 35 · mean 20; of ranks, best instead of peak. $value may have a decimal.
chart-now = teraz { $value }
chart-peak = szczyt { $value }
chart-best = najlepsze { $value }
chart-mean = średnia { $value }
chart-running = Przerywana końcówka: okres jeszcze trwa.
# A link to the values of the graph.
chart-table = Jako tabela

## Players online over time

online-over-25-hours = Gracze online w ciągu 25 godzin
online-over-32-days = Gracze online w ciągu 32 dni
online-over-a-year = Gracze online w ciągu roku
online-over-all-weeks = Gracze online we wszystkich tygodniach
# What a value of the graph is: each server has a mean for each time of this length, and these means are added.
online-means-of-10-minutes = suma średnich serwerów z 10 minut
online-means-of-an-hour = suma średnich serwerów z godziny
online-means-of-a-day = suma średnich serwerów z dnia
online-means-of-a-week = suma średnich serwerów z tygodnia
online-no-data = Jeszcze brak danych: nie minęło pierwsze dziesięć minut.
# $unit is such as `online-means-of-an-hour`.
online-caption = Od najnowszych{ $zone }. Gracze: { $unit }. Serwery: te, które odpowiedziały.
# The head of a column: the time at which a slot of a graph begins.
online-from = Od

## Page of a server

# $address is host:port.
server-description-of-game = Serwer { $game } pod adresem { $address }: gracze teraz, wykresy, rankingi tygodniowe, mapy.
server-description = Serwer pod adresem { $address }: gracze teraz, wykresy, rankingi tygodniowe, mapy.
# Describes a banner.
server-image = Serwer gry { $url }
server-excluded = Ten serwer jest wykluczony z rankingów.
# $time: when the server was last seen.
server-offline-since = offline od { $time }
server-no-answer = Serwer nie odpowiada.
# The heading of a list.
server-players-now = Gracze teraz
server-players-of-day = Gracze z ostatnich 24 godzin
server-availability = Dostępność
server-busy-hours = Godziny szczytu
server-maps = Mapy w tym tygodniu
server-best = Najlepsi wszech czasów
server-scanning = Jak jest skanowany
server-rank = Miejsce w ostatnim zamkniętym tygodniu
server-join = Dołącz do gry
# $tags is a list of links.
server-tags = Tagi: { $tags }
# Such as 3 of 16 on the map q3dm17; $count and $most are numbers of players.
server-now = { $count } z { $most } na { $map }
server-players-caption = Gracze z ostatniego skanu
server-ping = Ping, ms
# After the name of a player in a list, in brackets.
server-spectator = obserwator
server-bot = bot albo poza rankingiem
server-over-25-hours = Gracze w ciągu 25 godzin
server-over-32-days = Gracze w ciągu 32 dni
server-over-a-year = Gracze w ciągu roku
server-over-all-weeks = Gracze we wszystkich tygodniach
server-ranks = Miejsce serwera w ciągu 55 tygodni
# What a value of the graph is: the mean number of players in a time of this length.
server-mean-of-10-minutes = średnia z 10 minut
server-mean-of-an-hour = średnia z godziny
server-mean-of-a-day = średnia z dnia
server-mean-of-a-week = średnia z tygodnia
# What a value of the graph `server-ranks` is.
server-ranks-unit = 1 to pierwsze; przerwy: poza rankingiem
server-no-slot = Pierwsze dziesięć minut jeszcze nie minęło.
# $most may have a decimal.
server-busy-title = Średnia liczba graczy w każdej godzinie tygodnia. Najwięcej: { $most }
server-busy-caption = Średnia liczba graczy w każdej godzinie tygodnia z 32 dni, UTC; mocniejszy kolor: więcej
server-settings = Ustawienia serwera
server-settings-caption = Co publikuje serwer, pod nazwami z gry
# The head of a column.
server-setting = Ustawienie
server-rotation = Zaobserwowana kolejność map
# A list of maps with times follows.
server-rotation-meaning = Najnowsza mapa jest pierwsza. Skany co dwie minuty mogą pominąć jakąś mapę.
# $map is a link: the map that has followed the present one each time.
server-next-map = Następna, jak dotąd za każdym razem: { $map }
server-maps-caption = Mapy grane od początku tygodnia
server-best-meaning = Gracze z najlepszymi pozycjami w zamkniętych tygodniach, także tych, których już nie przechowujemy.
# $ranking is such as CLQ1.
server-best-caption = Najlepsze pozycje: { $ranking }
# The head of a column; the newest week with it is in the next one.
server-best-positions = Najlepsza pozycja
# Such as 1 in 2026-W47.
server-position-in-week = { $position } w { $week }
# $unit is such as `server-mean-of-an-hour`.
server-series-caption = { $unit }, od najnowszych{ $zone }
server-value = Wartość
server-queried = Odpytywany pod
server-class = Klasa
server-missed = Skany z rzędu bez odpowiedzi
server-coverage = Widoczność w tym tygodniu
server-authentication = Uwierzytelnianie odpowiedzi
server-no-reply = brak odpowiedzi od startu clqd
# A list follows.
server-screened = Nie użyto części jego odpowiedzi:
# $reason is a word of a program, $time when it was last the reason.
server-screened-last = { $reason }, ostatnio { $time }
server-classes = Klasa 1 jest skanowana co 2 minuty, 2 co 10 minut, 3 co godzinę, 4 codziennie, 5 co tydzień; 6 i 7 nie odpowiadają.

## Banners of a server or a player

banners-heading = Ramka i banery
banners-frame = Ramka na stronę WWW: co się teraz dzieje na serwerze albo u gracza.
banners-frame-html = Ramka, HTML
banners-codes = Kody do wstawienia na fora i strony. Większość forów przyjmuje BBCode; niektóre potrzebują tylko adresu obrazka, który kończy się na .png.
# $size is `banners-wide`, `banners-box`, `banners-small` or `banners-card`.
banners-size = { $size }, { $width } x { $height } pikseli
banners-html = { $size }, HTML
banners-bbcode = { $size }, BBCode
banners-wide = Szeroki
banners-box = Średni
banners-small = Mały
banners-card = Karta
banner-players = { $players }/{ $slots } graczy
banner-rank = miejsce { $rank }
banner-at = o { $time } UTC
banner-seen = online { $time } UTC
banner-never = jeszcze ani razu online
banner-points = { $points } pkt
banner-not-seen = nieobecny w tym tygodniu
banner-origin = { $game } na { $server }
banner-graph = gracze, 25 godzin

## Frames of other sites

embed-players = { $count } z { $most } graczy
# $map is a link.
embed-players-on-map = { $count } z { $most } graczy na { $map }
# The next two are of a player.
embed-playing-now = gra teraz
embed-last-seen = ostatnio online { $day }
# $server is a link.
embed-playing-on = { $game }, gra teraz na { $server }
embed-game-last-seen = { $game }, ostatnio online { $time }
embed-never-seen = { $game }, jeszcze ani razu online

## Boards

# $window is a week, a day or another period: 2026-W47, or 16 to 22 Nov 2026 (2026-W47).
boards-rankings-of = Rankingi: { $window }
# $ranking is the name of a ranking, such as ELO.
boards-ranking-in = { $ranking }, { $window }
# For those who hear the page. $ranking is the name of a ranking, $scope that of a server, a game or a tag.
boards-table-of = { $ranking }: { $scope }
boards-all-rankings = Wszystkie rankingi
# A link from the best players to all.
boards-all-players = Wszyscy gracze ({ $count })
boards-find-player = Znajdź gracza w tej tabeli
# $name is what the visitor has entered.
boards-not-found = Nie znaleziono: w tej tabeli żaden nick nie zawiera słów { $name }.
# Links to the first page of a board, to better positions, to further positions, and to the last page.
boards-pages = Strony tabeli
boards-first = Początek
boards-better = Wyżej
boards-further = Niżej
boards-last = Koniec
# $first and $last are positions: 51 to 100 of 1,204 players.
boards-shown =
    { $count ->
        [one] { $first }–{ $last } z { $count } gracza
        [few] { $first }–{ $last } z { $count } graczy
        [many] { $first }–{ $last } z { $count } graczy
       *[other] { $first }–{ $last } z { $count } gracza
    }
# The state of a week or another period.
boards-closed = Okres zamknięty: wyniki ostateczne.
boards-running = Okres trwa: wyniki wstępne.
# Follows boards-running or home-provisional: of the time of the week. $share is such as 66.7 %.
boards-coverage = Serwery były widziane przez { $share } tego czasu.
# The period that is shown.
boards-window = Okres
# Explains the head # of a column.
boards-position = pozycja
# The head of a column: when a player reached the score.
boards-reached = Osiągnięto
# The head of the column with the next three: how many positions a player has moved since the week before.
boards-change = Zmiana
boards-new = nowy
boards-up = w górę { $count }
boards-down = w dół { $count }
boards-no-player = Jeszcze brak graczy.
# What has changed since the week before. $player and $game are links; $position is mover-position, $up is mover-up-from.
mover-up = { $player } jest na { $position } w { $game }, { $up } w poprzednim tygodniu.
mover-new = { $player } jest na { $position } w { $game }, a w poprzednim tygodniu poza rankingiem.
# In mover-up and mover-new, bold: number 3.
mover-position = { $position }. pozycji
# In mover-up, coloured; $before is the position in the week before.
mover-up-from = awans z { $before }.
# Follows mover-up or mover-new: when the player reached the score.
mover-score = Wynik z { $time }.

## Games and tags

groups-games-caption = Gry z serwerami online
groups-tags = Tagi
groups-tags-caption = Tagi serwerów online
groups-most-played = { $count } z największą liczbą graczy, z { $most }.
# The heading of the page of a game, and of that of a tag.
groups-game = Gra { $name }
groups-tag = Tag { $name }
groups-peak = Najwięcej graczy w ciągu 25 godzin
groups-servers-of-game = Wszystkie serwery tej gry
groups-servers-of-tag = Wszystkie serwery z tym tagiem
# For search engines. $name is that of a game or a tag.
groups-description = { $name }: serwery online, liczba graczy w czasie i rankingi tygodniowe.

## Maps

map-none-yet = Jeszcze brak: te dane mogą być sprzed dziesięciu minut.
# $count: at most 200 maps.
map-list-caption = Najczęściej grane mapy we wszystkich zapisanych tygodniach, na wszystkich serwerach; najwyżej { $count }
# The head of a column with the number of weeks.
map-week-count = Tygodnie
map-share = Udział w czasie gry
map-title = Mapa { $name }
map-players-now = Gracze teraz
map-servers-now = Serwery z tą mapą teraz
map-servers-caption = Serwery z tą mapą, od największej liczby graczy
map-hours-title = Łączny czas gry wszystkich graczy
# The heading of a table with a row for each week.
map-weeks = Tygodnie
map-weeks-caption = Ile grano na tej mapie w każdym tygodniu, na wszystkich serwerach. Dane z bieżącego tygodnia są wstępne.
map-player-hours = Godziny wszystkich graczy
# For search engines.
map-description = Mapa { $name }: ile na niej grano tydzień po tygodniu i na jakich serwerach jest teraz.

## Tables of servers

server-table-25-hours = 25 godzin
# The head of the column that says when a server was seen: now, a time, or never.
server-table-seen = Online
server-table-never = nigdy
# Of a server.
server-table-not-ranked = poza rankingiem
server-table-none = Brak serwerów.
# Of a server: as many players as it can have.
server-table-full = pełny
server-table-not-believed = Serwer podaje więcej graczy, niż może mieć. Ta liczba nie jest używana.

## List of servers

servers-further = Dalsze serwery
servers-caption-added = Wszystkie serwery, w kolejności dodania
servers-caption-players = Serwery online, od największej liczby graczy
servers-caption-rank = Serwery w rankingu, od najlepszego w ostatnim zamkniętym tygodniu
servers-caption-name = Serwery, które odpowiadają, według nazw
# The filters. servers-all is the choice of all games, tags, countries or states.
servers-contains = Nazwa, adres lub mapa zawiera
servers-all = wszystkie
servers-state = Stan
servers-online = online
# How the list is ordered: by the time when servers were added, by players, by rank, by name.
servers-order = Sortowanie
servers-order-added = data dodania
servers-order-players = gracze
servers-order-rank = miejsce
servers-order-name = nazwa

## Search

# A heading.
search-title = Szukaj
search-enter = Wpisz nazwę serwera, gry lub mapy albo nick gracza.
# $text is what the visitor has entered.
search-for = Wyniki wyszukiwania: { $text }
# After the name of a player, and a comma or a space.
search-last-seen = ostatnio online { $time }
search-more-players = Jest ich więcej. Dłuższy tekst zawęzi wyniki.
search-players-caption = Gracze, których nick pasuje do tekstu
# The head of a column with positions. $ranking is CLQ1.
search-rank = { $ranking } w tym tygodniu
# $text is what the visitor has entered.
search-nothing = Nic nie znaleziono dla { $text }: żaden nick, żadna nazwa serwera, gry ani mapy nie zawiera tego tekstu, adres serwera też nie. Wielkość liter nie ma znaczenia.
search-servers-caption = Serwery, których nazwa lub adres pasuje do tekstu
search-more-servers = Może być ich więcej. Dłuższy tekst zawęzi wyniki.
search-games-and-maps = Gry i mapy
# $name is that of a game, which is said after it; so in search-map.
search-game = { $name }, gra
search-map = { $name }, mapa
# After the name of a server: 3/16 on q3dm17.
search-players-on = { $players } na { $map }

## Feeds

# $name is that of a server or a game.
feeds-title = { $name }: zwycięzcy tygodnia
# $ranking is the name of a ranking; a list of players follows.
feeds-ranking = { $ranking }:

## How it works

about-title = Jak to działa
about-scans = Każdy serwer gry odpowiada na krótkie zapytanie: podaje mapę, graczy i ich punkty. Ta strona odpytuje każdy serwer tak często, jak na to zasługuje (najczęściej co dwie minuty, najrzadziej raz w tygodniu), i porównuje każdą odpowiedź z poprzednią. Już z tego wiadomo, kto wszedł, kto wyszedł, kto zdobył punkty i kiedy skończyła się runda. Serwery nie potrzebują żadnego pluginu.
about-rankings = Rankingi
about-windows = Każdy ranking jest liczony za tydzień, dla każdego serwera, gry i tagu, a także za inne okresy ustawione na tej stronie.
about-clq1 = CLQ1, punkty na minutę
about-clq1-meaning = Jak szybko gracz zdobywa punkty. Gra jest dzielona na odcinki po 12 minut; wynik to średnia z dziesięciu najlepszych odcinków tygodnia. Brakujące liczą się jako 0, więc pełny wynik wymaga 2 godzin.
about-clq2 = CLQ2, punkty za wygrywanie
about-clq2-meaning = Bycie na górze listy na koniec rund: im więcej graczy niżej, tym więcej punktów.
about-elo = ELO, rating
about-elo-meaning = Każda runda to mecz każdego gracza z każdym. Wygrywa ten na wyższej pozycji i zabiera rating drugiemu.
about-points-meaning = Wszystkie punkty zdobyte w tygodniu.
about-time-meaning = Czas na serwerze.
about-example = Przykład
# Visor is the name of a player; Points and Time are the rankings `points` and `time-ranking`.
about-example-of-scans = Skan o 20:00 pokazuje, że Visor ma 10 punktów, a następny o 20:02, że 14. To 120 sekund gry i 4 zdobyte punkty: do rankingu Punkty dochodzą 4, do rankingu Czas 2 minuty, a tempo w tym kawałku gry to 4 / 2 = 2 punkty na minutę. Jeśli skan o 20:04 pokazuje 2 punkty i nową mapę, to runda się skończyła: do CLQ2 i ELO liczy się lista z 20:02, ostatnia, którą było widać.
# $accuracy is the link `about-accuracy`.
about-measured = Zmierzono, jak blisko rzeczywistości są rankingi: { $accuracy }.
about-accuracy = dokładność
about-unknown = Czego nie da się wiedzieć
about-unseen = Co się dzieje między dwoma skanami: minutowa wizyta może umknąć, a punktów po ostatnim skanie rundy nie widać. Szacunki takich rzeczy są pokazane osobno i nigdy nie liczą się w rankingach.
about-same-names = Kim jest gracz: graczy rozpoznaje się po nickach. Dwie osoby z tym samym nickiem w jednej grze to jeden gracz.
about-untrue = Czy serwer mówi prawdę. Niewiarygodne odpowiedzi nie są używane; powód jest na stronie serwera.
about-figures = Liczby
about-players = Gracze serwera: z jego ostatniej odpowiedzi. Wykresy pokazują średnie; przerwa oznacza brak odpowiedzi.
about-provisional = Wyniki bieżącego tygodnia są wstępne. Po zamknięciu tygodnia są ostateczne.
about-opting-out = Jak się wypisać
about-how-to-opt-out = Administratorzy serwerów: jeśli serwer nie ma być skanowany ani pokazywany albo jest skanowany zbyt często, wystarczy napisać do administratora tej strony. Gracze: nick i wszystkie jego dane są usuwane na prośbę, a nick nie zostanie już nigdy zapisany.
about-contact = Kontakt: { $contact }
about-no-contact = Kontakt: administrator go nie podał.

## Accuracy

accuracy-title = Dokładność
accuracy-heading = Jak blisko rzeczywistości są rankingi
accuracy-simulation = Nikt nie mówi tej stronie, co się działo na serwerze. Widzi ona tylko listy graczy, mniej więcej jedną na dwie minuty. Ile przy tym umyka, da się zmierzyć tam, gdzie wszystko jest znane: w symulacji. To tydzień na 48 serwerach i około 45 000 rund po 5 do 40 minut, z graczami, którzy wchodzą i wychodzą, kiedy chcą. Skanuje je program, na którym działa ta strona, a jego rankingi porównuje się z prawdziwymi.
accuracy-rounds = Rundy i sumy
# Heads of columns; they are explained by the texts `accuracy-...-meaning`.
accuracy-scans = skany
accuracy-time = czas
accuracy-points = punkty
accuracy-found = znalezione
accuracy-winner = zwycięzca
accuracy-top-3 = top 3
accuracy-sure = pewne
accuracy-right = trafne
# $number has decimals, such as +1.3.
accuracy-order = Kolejność graczy
accuracy-scans-meaning = Skany: liczba skanów każdego serwera w ciągu dwóch minut. * O stałych porach; wszystkie inne wtedy, gdy mówią najwięcej, na przykład tuż przed końcem rundy. 1,13 to tyle, ile robi program, jeśli administrator nie ustawi inaczej.
# The heads of columns that the next text explains.
accuracy-time-points = czas, punkty
accuracy-time-points-meaning = Suma u wszystkich graczy w porównaniu z tym, ile naprawdę grali i ile punktów zdobyli.
accuracy-found-winner-top-3 = znalezione, zwycięzca, top 3
accuracy-found-winner-top-3-meaning = Ile rund znaleziono, ile z właściwym zwycięzcą, ile z właściwą pierwszą trójką. Runda umyka, jeśli była za krótka albo nikt w niej nie został.
accuracy-sure-right = pewne, trafne
accuracy-sure-right-meaning = Ile znalezionych rund oznaczono jako pewne, bo skan widział ich koniec, i ile z nich ma właściwego zwycięzcę.
accuracy-order-of-players = kolejność graczy
accuracy-order-of-players-meaning = Jak dobrze kolejność graczy na serwerze zgadza się z prawdziwą: 1 to ta sama kolejność, 0 to przypadek.
accuracy-known = Co ranking może wiedzieć, a czego nie
accuracy-who-played = Kto grał i jak długo, wiadomo z dokładnością do czasu między dwoma skanami.
accuracy-unseen = Punktów między ostatnim skanem rundy a jej końcem nie widać. Dlatego sumy punktów są za małe.
accuracy-estimates = Szacunki czasu i punktów obejmują też to, czego nie widział żaden skan. Każdy ma margines błędu: w czterech przypadkach na pięć prawdziwa wartość się w nim mieści.
accuracy-closer = Kolejność graczy jest bliższa prawdy niż sumy.
accuracy-honest = Symulowani gracze są uczciwi i każdy ma własny nick. Prawdziwi miewają te same nicki i je zmieniają.
# $command is the command of a program; $about is the link `about-title`.
accuracy-measured = Jak się to mierzy i inne rodzaje rund: { $command }. { $about }.
