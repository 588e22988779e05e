# The texts of the website in German, in the format of Project Fluent. `$count` is a whole number; what other values are
# is said above a text. A translation has the same texts in its own file.

## Texts of several pages

player = Spieler
players-heading = Spieler
points = Punkte
server = Server
servers-heading = Server
game = Spiel
games-heading = Spiele
map = Map
maps-heading = Maps
country = Land
address = Adresse
rank = Rang
week = Woche
score = Wert
sessions = Sessions
last-seen = Zuletzt gesehen
since = Seit
share = Anteil
hours = Stunden
mean-players = Ø Spieler
player-count = Spieler
nobody = Niemand.
none-yet = Noch keine.
no-data-yet = Noch keine Daten.
now = jetzt
offline = offline
more = Mehr
search = Suchen
find = Finden
# $count of $most, such as 3 of 16 players.
of-most = { $count } von { $most }
# $number may have a decimal, such as 66.7.
percent = { $number } %
# The title of a page: $title is what it shows, $name is that of a server or a game.
title-and-name = { $title }: { $name }
show = Anzeigen
tag = Tag
# Where a list of games, tags, players or maps is empty.
none = Keine.
winners-feed = Die Sieger jeder Woche als Feed

## Numbers and times

# $minutes has two digits where hours are before it.
minutes-only = { $minutes } min
hours-and-minutes = { $hours } h { $minutes } min
hours-only = { $hours } h
month-1 = Jan
month-2 = Feb
month-3 = Mär
month-4 = Apr
month-5 = Mai
month-6 = Jun
month-7 = Jul
month-8 = Aug
month-9 = Sep
month-10 = Okt
month-11 = Nov
month-12 = Dez
weekday-1 = Mo
weekday-2 = Di
weekday-3 = Mi
weekday-4 = Do
weekday-5 = Fr
weekday-6 = Sa
weekday-7 = So
# A day or a period of days: 23 Nov 2026; 23 to 29 Nov 2026; 23 Nov to 2 Dec 2026.
date = { $day }. { $month } { $year }
# A day in a table or below a graph: 9 Nov.
short-date = { $day }. { $month }
days-of-month = { $first }. bis { $day }. { $month } { $year }
days-of-months = { $first_day }. { $first_month } bis { $day }. { $month } { $year }
# A week in a table: 23–29 Nov; 30 Nov – 6 Dec.
short-days-of-month = { $first }.–{ $day }. { $month }
short-days-of-months = { $first_day }. { $first_month } – { $day }. { $month }

## Rankings

points-for-winning = Punkte fürs Gewinnen
rating = Wertungszahl
points-unit = insgesamt gesammelt
hours-and-minutes-unit = Stunden und Minuten
time-ranking = Spielzeit
points-per-minute = Punkte pro Minute
clq1-rewards = Belohnt schnelles Punkten: der Durchschnitt der zehn besten Abschnitte von 12 Minuten. Fehlende zählen als 0, ein voller Wert braucht also 2 Stunden.
clq1-listed = Gelistet wird, wer 12 Minuten am Stück spielt und punktet.
clq2-rewards = Belohnt vordere Plätze am Rundenende: je mehr Spieler dahinter, desto mehr Punkte; die zehn besten Runden werden addiert.
clq2-listed = Gelistet wird, wer am Ende einer Runde mit mindestens zwei Spielern zu den Besten gehört.
elo-rewards = Belohnt Siege gegen starke Spieler: Am Rundenende holt sich jeder ELO-Punkte von denen hinter ihm und gibt welche an die vor ihm ab.
elo-listed = Gelistet wird, wer eine Runde mit anderen zu Ende spielt.
points-rewards = Belohnt viele Punkte: Alle zählen.
time-rewards = Belohnt Ausdauer: Die ganze Zeit zählt, gemessen zwischen je zwei Abfragen.
seen-playing-listed = Gelistet wird, wer beim Spielen gesehen wird.

## The frame of all pages

# Where the operator has set no other title and description.
site-title = Game-Statistiken
site-description = Spieler online, Ranglisten und Statistiken von Gameservern.
frame-skip = Zum Inhalt
frame-site = Website
frame-about = Info
frame-search-label = Server, Spieler, Maps
frame-source = Alle Zahlen berechnet clqd aus den öffentlichen Antworten der Gameserver.
frame-utc = Zeiten in UTC.
frame-how = So funktioniert es, und so geht das Opt-out
frame-links = Links der Website
frame-languages = Sprachen
error-try-again = In { $seconds } s noch einmal versuchen.
error-first-page = Zur Startseite
# A link with error-running-week follows.
error-window = Von diesem Zeitraum ist nichts gespeichert.
error-running-week = Zur laufenden Woche
# A search form follows.
error-player = Diesen Spieler kennt diese Seite nicht. Suche nach dem Namen:
# A link to all servers follows, as after the next one.
error-server = Diesen Server kennt diese Seite nicht.
error-server-removed = Dieser Server wurde entfernt: Er ist hier nicht mehr gelistet.
error-not-found = Unter dieser Adresse gibt es nichts. Vielleicht ist sie falsch, oder was hier war, ist nicht mehr gespeichert.
error-bad-request = Etwas in dieser Adresse ist nicht verwendbar.
problem-bad-request = Ungültige Anfrage
problem-unauthorized = Token erforderlich
problem-forbidden = Nicht erlaubt
problem-not-found = Nicht gefunden
problem-removed = Entfernt
problem-method-not-allowed = Methode nicht erlaubt
problem-conflict = Zurzeit nicht möglich
problem-uri-too-long = URI zu lang
problem-too-many-requests = Zu viele Anfragen
problem-internal = Interner Fehler
problem-answer-too-large = Die Antwort ist zu groß
problem-starting = Der Daemon startet gerade
problem-stopping = Der Daemon wird beendet
problem-busy = Der Daemon ist ausgelastet
script-add-favourite = ☆ Zu den Favoriten
# Of a button, for 2 seconds after a click on `script-copy`.
script-copied = Kopiert
# Of a button: to the clipboard.
script-copy = Kopieren
# Of a button that is pressed: this server or player is a favourite.
script-favourite = ★ Favorit
script-favourites = Deine Favoriten
# After the time of a point of a graph, such as "2026-11-23 14:00: no data".
script-no-data = keine Daten
# What is suggested while one types a search.
script-suggestions = Vorschläge
# "Yours": in the time zone of the visitor.
script-zone = Zeiten in deiner Zeitzone; Tage und Wochen sind die dieser Website.

## First page

home-silent = Seit { $since } antwortet kein Server: Das Netz dieser Website scheint gestört zu sein. Bis es wieder da ist, sind die Zahlen unvollständig.
home-busiest = Hier ist am meisten los
home-busiest-caption = Server mit den meisten Spielern im Moment
home-all-servers = Alle Server
home-played = Was gespielt wird
home-played-caption = Spiele mit den meisten Spielern im Moment
home-no-server = Kein Server ist online.
home-all-games = Alle Spiele
# $week is its days, such as 23–29 Nov; so in home-winners.
home-leaders = Spitzenreiter { $week }
home-provisional = Vorläufig bis zum Ende der Woche.
# $ranking and $unit: CLQ1, points per minute. `clq1-rewards` follows.
home-unit = { $ranking }: { $unit }.
home-no-leaders = Noch keine, oder nach einem Neustart noch in Arbeit.
home-changed = Was sich getan hat
home-over-time = Spieler im Verlauf
home-closed = Abgeschlossene Wochen
home-winners = Sieger { $week }
home-older-weeks = Ältere Wochen
home-no-closed = Noch keine Woche ist abgeschlossen.
home-players-online = Spieler online
home-servers-online = Server online
home-known-servers = Bekannte Server
home-known-players = Bekannte Spieler

## Page of a player

# A title. $name is the player's name without colours.
player-title = Spieler { $name }
player-description = Spieler { $name } in { $game }: Sessions, Wochen und beste Platzierungen.
player-first-seen = Erstmals gesehen
# Instead of a time, after Last seen.
player-playing-now = spielt gerade
# $servers is links, with spaces between them.
player-playing-on = Spielt gerade auf { $servers }
# $game is the name of a game. A table follows: rankings and weeks.
player-rank = Rang in { $game }
player-this-week = Diese Woche
# $names is the player's other names, with spaces between them.
player-merged = Zusammengeführt mit: { $names }
# $games is links, with spaces between them.
player-same-name = Derselbe Name in anderen Spielen: { $games }
player-weeks = Wochen
# The last sentence explains the word that some figures have in their names.
player-weeks-kept = Alle Wochen, die clqd speichert. Die laufende Woche ist vorläufig. Geschätzt: Punkte und Zeit zwischen zwei Abfragen, nie gewertet.
player-best-positions = Beste Platzierungen
# The label of a field for a name.
player-compare-with = Mit Spieler vergleichen
# A button.
player-compare = Vergleichen
# $week is its days, such as 23–29 Nov. The position is shown below.
player-best-of-week = Bester Platz, { $week }
# A position in a ranking of a server, such as #3 CLQ1 on Warfare.
player-position = #{ $position } { $ranking } auf { $server }
# The server on which the player was longest is shown below.
player-most-on = Meistens auf
player-points-counted = Punkte in allen gespeicherten Wochen
player-points-estimated = Punkte, geschätzt
player-time-counted = Zeit in allen gespeicherten Wochen
# What one clicks to see estimated points and time.
player-estimates = Schätzungen
player-time-estimated = Zeit, geschätzt
# Explains an estimate such as 1,204 ± 30.
player-estimated-meaning = Mit dem, was keine Abfrage gesehen hat. In vier von fünf Fällen weicht der wahre Wert höchstens um die zweite Zahl ab.
# The title of a chart, and its unit: hours in each week.
player-hours-played = Gespielte Stunden
player-hours-unit = Stunden pro Woche
# The title of a chart. $ranking is such as CLQ1, $server is a name.
player-ranking-on = { $ranking } auf { $server }
# What one clicks to see further charts.
player-more-rankings = Alle Wertungen nach Woche
player-weeks-caption = Werte und Plätze nach Woche und Server
player-sure-rounds = Sichere Runden
player-sure-rounds-meaning = Von den Runden, die für CLQ2 und ELO zählen, die mit sicherem Sieger: Eine Abfrage hat ihr Ende gesehen
# No week.
player-no-weeks = Keine gespeichert.
# A link to further weeks on servers.
player-more-weeks = Und { $count } weitere
# No position.
player-no-positions = Noch keine: Plätze zählen, sobald eine Woche abgeschlossen ist.
player-best-caption = Die besten Platzierungen in abgeschlossenen Wochen
player-more-positions = Weitere Platzierungen
# The head of a column with the names of rankings, such as CLQ1.
player-ranking = Wertung

## Comparison of two players

compare-two = Zwei Spieler vergleichen
compare-search = Suche zuerst einen von beiden: Auf jeder Spielerseite gibt es ein Feld zum Vergleichen.
# Titles. $a, $b and $player are names of players.
compare-both-names = { $a } und { $b }
compare-one = { $player } vergleichen
compare-no-player = Kein Spieler heißt { $name }.
# Which one of the listed players.
compare-which = Welcher davon?
compare-both = Beide Spieler
# The head of the column with what is compared, for screen readers.
compare-what = Was
compare-ahead = Wer vorne lag
compare-no-week = In keiner Woche waren beide auf demselben Server.
compare-weeks =
    { $count ->
        [one] Gemeinsam auf demselben Server: { $count } Woche.
       *[other] Gemeinsam auf demselben Server: { $count } Wochen.
    }
compare-counted = Eine Woche zählt für eine Wertung, wenn beide darin einen Platz haben.
compare-partial = Verglichen werden nur die jeweils neuesten Wochen.
compare-ahead-caption = Wie oft welcher Spieler vorne lag
compare-by-week = Woche für Woche
compare-by-week-caption = Werte, der bessere Platz fett
# The newest weeks.
compare-newest = Angezeigt werden die neuesten { $count }.

## Sessions of a player or on a server

# No session.
sessions-none = Keine gespeichert.
sessions-measured = Gemessen von der ersten bis zur letzten Abfrage, die den Spieler gesehen hat: Tatsächlich war es ein paar Minuten länger.
sessions-newest = Neueste Sessions
# Older sessions; the first is what one clicks to see them, the second is the title of their table.
sessions-older = Ältere
sessions-older-caption = Ältere Sessions
# More sessions.
sessions-as-json = Mehr davon als JSON
# Heads of columns: the time at which a session ended, and how long it was.
sessions-until = Bis
sessions-for = Dauer
# Instead of a time, of a session that only one scan has seen.
sessions-once = einmal gesehen
sessions-last-map = Letzte Map
# $players is a list of links with times.
sessions-companions = Spielt mit { $players }
sessions-days-title = Zeiten auf einem Server, nach Tag
sessions-days-caption = Wann der Spieler da war, UTC
# $largest is hours and minutes, such as 3:05.
sessions-hours-title = Stunden der Woche, in denen der Spieler da war. Maximum: { $largest } in einer Stunde der Woche
sessions-hours-caption = Stunden der Woche, in denen der Spieler da ist, UTC; kräftigere Farbe: länger
sessions-players = { $count } Spieler.
sessions-longest = Spieler, die am längsten hier waren
sessions-more-players = Weitere Spieler

## Availability of a server

availability-last-days =
    { $count ->
        [one] Letzter Tag
       *[other] Letzte { $count } Tage
    }
# $percent is a number, with one decimal at most.
availability-of-hours = { $percent } % der Stunden
availability-of-days = { $percent } % der Tage
# A day is shown below.
availability-known-since = Bekannt seit
availability-title = Stunden pro Tag, in denen der Server gesehen wurde
# $date is such as 2026-11-23; $count is 0 to 24.
availability-day = { $date }: { $count } von 24 Stunden
availability-unwatched = { $date }: Stunden, in denen diese Website keinen Server sah: { $hours }
availability-caption = Stunden pro Tag, in denen eine Abfrage beantwortet wurde, UTC. Ein Server, der nur einmal am Tag abgefragt wird, ist in einer Stunde des Tages zu sehen. Heller und nicht gezählt: Stunden, in denen diese Website selbst keinen Server sah.

## Graphs

# In this and the next three texts $title is such as `server-over-32-days`, $unit such as `server-mean-of-an-hour`.
chart-title = { $title }, { $unit }
# $largest is a value, which may have a decimal.
chart-title-largest = { $title }, { $unit }. Maximum: { $largest }
chart-title-newest = { $title }, { $unit }. Zuletzt: { $newest }. Maximum: { $largest }
# Below a graph; its title is above it.
chart-caption = { $unit }{ $zone }.
# Above a graph: now 12 · peak 35 · mean 20; of ranks, best instead of peak. $value may have a decimal.
chart-now = jetzt { $value }
chart-peak = Spitze { $value }
chart-best = bester { $value }
chart-mean = Mittel { $value }
chart-running = Der gestrichelte Abschnitt ist noch nicht abgeschlossen.
# A link to the values of the graph.
chart-table = Als Tabelle

## Players online over time

online-over-25-hours = Spieler online (25 Stunden)
online-over-32-days = Spieler online (32 Tage)
online-over-a-year = Spieler online (ein Jahr)
online-over-all-weeks = Spieler online (alle Wochen)
# What a value of the graph is: each server has a mean for each time of this length, and these means are added.
online-means-of-10-minutes = Summe der 10-Minuten-Mittel der Server
online-means-of-an-hour = Summe der Stundenmittel der Server
online-means-of-a-day = Summe der Tagesmittel der Server
online-means-of-a-week = Summe der Wochenmittel der Server
online-no-data = Noch keine Daten: Die ersten zehn Minuten sind noch nicht um.
# $unit is such as `online-means-of-an-hour`.
online-caption = Neueste zuerst{ $zone }. Spieler: { $unit }. Server: alle, die gesehen wurden.
# The head of a column: the time at which a slot of a graph begins.
online-from = Ab

## Page of a server

# $address is host:port.
server-description-of-game = { $game }, Server { $address }: aktuelle Spieler und Verlauf, wöchentliche Ranglisten, Maps.
server-description = Server { $address }: aktuelle Spieler und Verlauf, wöchentliche Ranglisten, Maps.
# Describes a banner.
server-image = Gameserver { $url }
server-excluded = Dieser Server ist von den Ranglisten ausgeschlossen.
# $time: when the server was last seen.
server-offline-since = offline seit { $time }
server-no-answer = Der Server antwortet nicht.
# The heading of a list.
server-players-now = Aktuelle Spieler
server-players-of-day = Spieler der letzten 24 Stunden
server-availability = Verfügbarkeit
server-busy-hours = Stoßzeiten
server-maps = Maps dieser Woche
server-best = Ewige Bestenliste
server-scanning = So wird abgefragt
server-rank = Rang der letzten abgeschlossenen Woche
server-join = Mitspielen
# $tags is a list of links.
server-tags = Tags: { $tags }
# Such as 3 of 16 on the map q3dm17; $count and $most are numbers of players.
server-now = { $count } von { $most } auf { $map }
server-players-caption = Spieler bei der letzten Abfrage
server-ping = Ping, ms
# After the name of a player in a list, in brackets.
server-spectator = Zuschauer
server-bot = Bot oder nicht gewertet
server-over-25-hours = Spieler (25 Stunden)
server-over-32-days = Spieler (32 Tage)
server-over-a-year = Spieler (ein Jahr)
server-over-all-weeks = Spieler (alle Wochen)
server-ranks = Rang des Servers (55 Wochen)
# What a value of the graph is: the mean number of players in a time of this length.
server-mean-of-10-minutes = 10-Minuten-Mittel
server-mean-of-an-hour = Stundenmittel
server-mean-of-a-day = Tagesmittel
server-mean-of-a-week = Wochenmittel
# What a value of the graph `server-ranks` is.
server-ranks-unit = 1 ist der beste; Lücken: nicht gewertet
server-no-slot = Die ersten zehn Minuten sind noch nicht um.
# $most may have a decimal.
server-busy-title = Ø Spieler in jeder Stunde der Woche. Maximum: { $most }
server-busy-caption = Ø Spieler in jeder Stunde der Woche (32 Tage), UTC; kräftigere Farbe: mehr
server-settings = Einstellungen des Servers
server-settings-caption = Was der Server veröffentlicht, mit den Namen aus dem Spiel
# The head of a column.
server-setting = Einstellung
server-rotation = Beobachtete Map-Rotation
# A list of maps with times follows.
server-rotation-meaning = Die neueste Map kommt zuerst. Bei Abfragen im Abstand von zwei Minuten kann eine Map übersehen werden.
# $map is a link: the map that has followed the present one each time.
server-next-map = Als Nächstes, wie bisher jedes Mal: { $map }
server-maps-caption = Maps, die seit Wochenbeginn gespielt wurden
server-best-meaning = Die Spieler mit den besten Platzierungen in abgeschlossenen Wochen, auch in nicht mehr gespeicherten.
# $ranking is such as CLQ1.
server-best-caption = Beste Platzierungen: { $ranking }
# The head of a column; the newest week with it is in the next one.
server-best-positions = Bester Platz
# Such as 1 in 2026-W47.
server-position-in-week = { $position } in { $week }
# $unit is such as `server-mean-of-an-hour`.
server-series-caption = { $unit }, neueste zuerst{ $zone }
server-value = Wert
server-queried = Abgefragt unter
server-class = Klasse
server-missed = Unbeantwortete Abfragen in Folge
server-coverage = Anteil dieser Woche, in dem er gesehen wurde
server-authentication = Authentifizierung der Antworten
server-no-reply = keine Antwort seit dem Start von clqd
# A list follows.
server-screened = Teile der Antworten wurden nicht verwendet:
# $reason is a word of a program, $time when it was last the reason.
server-screened-last = { $reason }, zuletzt { $time }
server-classes = Klasse 1 wird alle 2 Minuten abgefragt, 2 alle 10 Minuten, 3 stündlich, 4 täglich, 5 wöchentlich; 6 und 7 antworten nicht.

## Banners of a server or a player

banners-heading = Frame und Banner
banners-frame = Ein Frame für eine Website, der zeigt, was auf dem Server oder beim Spieler gerade los ist.
banners-frame-html = Frame, HTML
banners-codes = Codes zum Einbinden in Foren und Websites. Die meisten Foren können BBCode; manche brauchen nur die Adresse des Bilds, die auf .png endet.
# $size is `banners-wide`, `banners-box`, `banners-small` or `banners-card`.
banners-size = { $size }, { $width } × { $height } Pixel
banners-html = { $size }, HTML
banners-bbcode = { $size }, BBCode
banners-wide = Breit
banners-box = Box
banners-small = Klein
banners-card = Karte
banner-players = { $players }/{ $slots } Spieler
banner-rank = Rang { $rank }
banner-at = um { $time } UTC
banner-seen = gesehen { $time } UTC
banner-never = nie gesehen
banner-points = { $points } Punkte
banner-not-seen = diese Woche nicht gesehen
banner-origin = { $game } auf { $server }
banner-graph = Spieler, 25 Stunden

## Frames of other sites

embed-players = { $count } von { $most } Spielern
# $map is a link.
embed-players-on-map = { $count } von { $most } Spielern auf { $map }
# The next two are of a player.
embed-playing-now = spielt gerade
embed-last-seen = zuletzt gesehen { $day }
# $server is a link.
embed-playing-on = { $game }, spielt gerade auf { $server }
embed-game-last-seen = { $game }, zuletzt gesehen { $time }
embed-never-seen = { $game }, nie gesehen

## Boards

# $window is a week, a day or another period: 2026-W47, or 16 to 22 Nov 2026 (2026-W47).
boards-rankings-of = Ranglisten für { $window }
# $ranking is the name of a ranking, such as ELO.
boards-ranking-in = { $ranking } in { $window }
# For those who hear the page. $ranking is the name of a ranking, $scope that of a server, a game or a tag.
boards-table-of = { $ranking } für { $scope }
boards-all-rankings = Alle Ranglisten
# A link from the best players to all.
boards-all-players =
    { $count ->
        [one] { $count } Spieler
       *[other] Alle { $count } Spieler
    }
boards-find-player = Spieler in dieser Rangliste finden
# $name is what the visitor has entered.
boards-not-found = Nicht gefunden: In dieser Rangliste steht kein Spieler, dessen Name die Wörter { $name } enthält.
# Links to the first page of a board, to better positions, to further positions, and to the last page.
boards-pages = Seiten der Rangliste
boards-first = Erste
boards-better = Bessere
boards-further = Weitere
boards-last = Letzte
# $first and $last are positions: 51 to 100 of 1,204 players.
boards-shown =
    { $count ->
        [one] { $first } bis { $last } von { $count } Spieler
       *[other] { $first } bis { $last } von { $count } Spielern
    }
# The state of a week or another period.
boards-closed = Abgeschlossen: endgültig.
boards-running = Läuft noch: vorläufig.
# Follows boards-running or home-provisional: of the time of the week. $share is such as 66.7 %.
boards-coverage = Server wurden in { $share } der Zeit gesehen.
# The period that is shown.
boards-window = Zeitraum
# Explains the head # of a column.
boards-position = Platz
# The head of a column: when a player reached the score.
boards-reached = Erreicht
# The head of the column with the next three: how many positions a player has moved since the week before.
boards-change = Trend
boards-new = neu
boards-up = +{ $count }
boards-down = −{ $count }
boards-no-player = Noch kein Spieler.
# What has changed since the week before. $player and $game are links; $position is mover-position, $up is mover-up-from.
mover-up = { $player } steht in { $game } auf { $position }, { $up } in der Vorwoche.
mover-new = { $player } steht in { $game } auf { $position } und war in der Vorwoche nicht platziert.
# In mover-up and mover-new, bold: number 3.
mover-position = Platz { $position }
# In mover-up, coloured; $before is the position in the week before.
mover-up-from = nach Platz { $before }
# Follows mover-up or mover-new: when the player reached the score.
mover-score = Wert vom { $time }.

## Games and tags

groups-games-caption = Spiele, für die Server online sind
groups-tags = Tags
groups-tags-caption = Tags von Servern, die online sind
groups-most-played = Die { $count } mit den meisten Spielern, von { $most }.
# The heading of the page of a game, and of that of a tag.
groups-game = Spiel { $name }
groups-tag = Tag { $name }
groups-peak = Meiste Spieler in 25 Stunden
groups-servers-of-game = Alle Server für dieses Spiel
groups-servers-of-tag = Alle Server mit diesem Tag
# For search engines. $name is that of a game or a tag.
groups-description = { $name }: Server online, Spieler im Verlauf und wöchentliche Ranglisten.

## Maps

map-none-yet = Noch keine: Diese Zahlen sind bis zu zehn Minuten alt.
# $count: at most 200 maps.
map-list-caption = Die meistgespielten Maps aller gespeicherten Wochen, auf allen Servern; höchstens { $count }
# The head of a column with the number of weeks.
map-week-count = Wochen
map-share = Anteil gesamt
map-title = Map { $name }
map-players-now = Aktuelle Spieler
map-servers-now = Server, auf denen sie läuft
map-servers-caption = Server mit dieser Map, die meisten Spieler zuerst
map-hours-title = Gespielte Stunden aller Spieler
# The heading of a table with a row for each week.
map-weeks = Wochen
map-weeks-caption = Wie viel die Map in jeder Woche gespielt wurde, auf allen Servern. Die laufende Woche ist vorläufig.
map-player-hours = Stunden aller Spieler
# For search engines.
map-description = Die Map { $name }: wie viel sie in jeder Woche gespielt wurde und auf welchen Servern sie gerade läuft.

## Tables of servers

server-table-25-hours = 25 Stunden
# The head of the column that says when a server was seen: now, a time, or never.
server-table-seen = Gesehen
server-table-never = nie
# Of a server.
server-table-not-ranked = nicht gewertet
server-table-none = Kein Server.
# Of a server: as many players as it can have.
server-table-full = voll
server-table-not-believed = Der Server meldet mehr Spieler, als er haben kann. Diese Zahl wird nicht verwendet.

## List of servers

servers-further = Weitere Server
servers-caption-added = Alle Server in der Reihenfolge, in der sie hinzugefügt wurden
servers-caption-players = Server online, die meisten Spieler zuerst
servers-caption-rank = Server mit Rang, der beste der letzten abgeschlossenen Woche zuerst
servers-caption-name = Server, die antworten, nach Name
# The filters. servers-all is the choice of all games, tags, countries or states.
servers-contains = Name, Adresse oder Map enthält
servers-all = alle
servers-state = Status
servers-online = online
# How the list is ordered: by the time when servers were added, by players, by rank, by name.
servers-order = Sortierung
servers-order-added = Hinzugefügt
servers-order-players = Spieler
servers-order-rank = Rang
servers-order-name = Name

## Search

# A heading.
search-title = Suche
search-enter = Gib den Namen eines Servers, Spielers, Spiels oder einer Map ein.
# $text is what the visitor has entered.
search-for = Suche nach { $text }
# After the name of a player, and a comma or a space.
search-last-seen = zuletzt gesehen { $time }
search-more-players = Es gibt noch mehr. Ein längerer Suchtext findet weniger.
search-players-caption = Spieler, deren Name zum Text passt
# The head of a column with positions. $ranking is CLQ1.
search-rank = { $ranking } diese Woche
# $text is what the visitor has entered.
search-nothing = Nichts gefunden für { $text }: Kein Name eines Spielers, Servers, Spiels oder einer Map enthält diesen Text, auch keine Serveradresse. Groß- und Kleinschreibung sind egal.
search-servers-caption = Server, deren Name oder Adresse zum Suchtext passt
search-more-servers = Vielleicht gibt es noch mehr. Ein längerer Suchtext findet weniger.
search-games-and-maps = Spiele und Maps
# $name is that of a game, which is said after it; so in search-map.
search-game = { $name }, Spiel
search-map = { $name }, Map
# After the name of a server: 3/16 on q3dm17.
search-players-on = { $players } auf { $map }

## Feeds

# $name is that of a server or a game.
feeds-title = { $name }: Sieger der Woche
# $ranking is the name of a ranking; a list of players follows.
feeds-ranking = { $ranking }:

## How it works

about-title = So funktioniert es
about-scans = Jeder Gameserver beantwortet eine kleine Anfrage: mit seiner Map, seinen Spielern und ihren Punkten. Diese Website fragt jeden Server so oft ab, wie es sich lohnt (alle zwei Minuten bis einmal pro Woche), und vergleicht jede Antwort mit der vorigen. Allein daraus weiß sie, wer gekommen und gegangen ist, wer gepunktet hat und wann eine Runde zu Ende war. Server brauchen dafür kein Plugin.
about-rankings = Wertungen
about-windows = Jede Wertung wird für jede Woche berechnet, für jeden Server, jedes Spiel und jedes Tag, und außerdem für weitere Zeiträume, die für diese Website eingestellt sind.
about-clq1 = CLQ1, Punkte pro Minute
about-clq1-meaning = Wie schnell ein Spieler Punkte sammelt. Die Spielzeit wird in Abschnitte von 12 Minuten geteilt; der Wert ist der Durchschnitt der zehn besten Abschnitte der Woche. Fehlende zählen als 0, ein voller Wert braucht also 2 Stunden.
about-clq2 = CLQ2, Punkte fürs Gewinnen
about-clq2-meaning = Am Ende der Runden oben auf der Liste stehen: je mehr Spieler darunter, desto mehr Punkte.
about-elo = ELO, Wertungszahl
about-elo-meaning = Jede Runde ist ein Duell jedes Spielers gegen jeden anderen. Wer den besseren Platz hat, gewinnt und nimmt dem anderen ELO-Punkte ab.
about-points-meaning = Alle Punkte, die in der Woche gesammelt wurden.
about-time-meaning = Die Zeit auf dem Server.
about-example = Ein Beispiel
# Visor is the name of a player; Points and Time are the rankings `points` and `time-ranking`.
about-example-of-scans = Eine Abfrage um 20:00 Uhr zeigt Visor mit 10 Punkten, die nächste um 20:02 Uhr mit 14. Visor hat 120 Sekunden gespielt und 4 Punkte gesammelt: Zur Wertung Punkte kommen 4 hinzu, zur Wertung Spielzeit 2 Minuten, und in diesem Stück war das Tempo 4 / 2 = 2 Punkte pro Minute. Zeigt die Abfrage um 20:04 Uhr 2 Punkte und eine neue Map, ist eine Runde zu Ende gegangen: Für CLQ2 und ELO wird die Liste von 20:02 Uhr gewertet, die letzte, die gesehen wurde.
# $accuracy is the link `about-accuracy`.
about-measured = Wie nah die Wertungen dem kommen, was wirklich passiert ist, wird gemessen: { $accuracy }.
about-accuracy = Genauigkeit
about-unknown = Was man nicht wissen kann
about-unseen = Was zwischen zwei Abfragen passiert: Wer nur eine Minute da ist, bleibt vielleicht unbemerkt, und Punkte nach der letzten Abfrage einer Runde werden nicht gesehen. Schätzungen dafür werden getrennt angezeigt und nie gewertet.
about-same-names = Wer ein Spieler ist: Spieler werden an ihrem Namen erkannt. Zwei Leute mit demselben Namen in einem Spiel sind ein Spieler.
about-untrue = Ob ein Server die Wahrheit sagt. Unglaubwürdige Antworten werden nicht verwendet; warum, steht auf der Seite des Servers.
about-figures = Zahlen
about-players = Spieler eines Servers: laut seiner letzten Antwort. Diagramme zeigen Mittelwerte; eine Lücke heißt, dass keine Antwort kam.
about-provisional = Eine laufende Woche ist vorläufig. Sie ist endgültig, wenn sie abgeschlossen ist.
about-opting-out = Opt-out
about-how-to-opt-out = Für Serverbetreiber: Soll ein Server nicht abgefragt oder nicht gelistet werden oder wird er zu oft abgefragt, genügt eine Nachricht an den Betreiber dieser Website. Für Spieler: Ein Name wird auf Wunsch mit allen seinen Daten gelöscht und nie wieder gespeichert.
about-contact = Kontakt: { $contact }
about-no-contact = Kontakt: Der Betreiber hat keinen angegeben.

## Accuracy

accuracy-title = Genauigkeit
accuracy-heading = Wie nah die Wertungen dem kommen, was wirklich passiert ist
accuracy-simulation = Niemand sagt dieser Website, was auf einem Server passiert ist. Sie sieht nur Listen von Spielern, etwa alle zwei Minuten eine. Wie viel ihr dabei entgeht, lässt sich dort messen, wo alles bekannt ist: in einer Simulation. Sie umfasst eine Woche mit 48 Servern und rund 45.000 Runden von 5 bis 40 Minuten, mit Spielern, die kommen und gehen, wie sie wollen. Das Programm hinter dieser Website fragt diese Server ab, und seine Wertungen werden mit den wahren verglichen.
accuracy-rounds = Runden und Summen
# Heads of columns; they are explained by the texts `accuracy-...-meaning`.
accuracy-scans = Abfragen
accuracy-time = Zeit
accuracy-points = Punkte
accuracy-found = gefunden
accuracy-winner = Sieger
accuracy-top-3 = Top 3
accuracy-sure = sicher
accuracy-right = richtig
# $number has decimals, such as +1.3.
accuracy-order = Reihenfolge der Spieler
accuracy-scans-meaning = Abfragen: pro Server in zwei Minuten. * Zu festen Zeiten; alle anderen finden statt, wenn sie am meisten verraten, etwa kurz vor dem Ende einer Runde. 1,13 ist die Voreinstellung des Programms, die sein Betreiber ändern kann.
# The heads of columns that the next text explains.
accuracy-time-points = Zeit, Punkte
accuracy-time-points-meaning = Die Summe über alle Spieler, verglichen mit ihrer wahren Spielzeit und ihren wahren Punkten.
accuracy-found-winner-top-3 = gefunden, Sieger, Top 3
accuracy-found-winner-top-3-meaning = Wie viele der Runden gefunden wurden, mit dem richtigen Sieger, mit den richtigen ersten drei. Eine Runde wird nicht gefunden, wenn sie zu kurz war oder niemand geblieben ist.
accuracy-sure-right = sicher, richtig
accuracy-sure-right-meaning = Wie viele der gefundenen Runden als sicher markiert sind, weil eine Abfrage ihr Ende gesehen hat, und wie viele davon den richtigen Sieger haben.
accuracy-order-of-players = Reihenfolge der Spieler
accuracy-order-of-players-meaning = Wie gut die Reihenfolge der Spieler auf einem Server mit der wahren übereinstimmt: 1 ist dieselbe Reihenfolge, 0 ist Zufall.
accuracy-known = Was eine Wertung wissen kann und was nicht
accuracy-who-played = Wer gespielt hat und wie lange, ist so genau bekannt, wie der Abstand zwischen zwei Abfragen es zulässt.
accuracy-unseen = Punkte zwischen der letzten Abfrage einer Runde und ihrem Ende werden nicht gesehen. Punktesummen sind deshalb zu niedrig.
accuracy-estimates = Schätzungen von Zeit und Punkten enthalten auch, was keine Abfrage gesehen hat. Zu jeder gehört ein Fehler: In vier von fünf Fällen weicht der wahre Wert höchstens so weit ab.
accuracy-closer = Die Reihenfolge der Spieler ist näher an der Wahrheit als die Summen.
accuracy-honest = Die simulierten Spieler sind ehrlich, und jeder hat einen eigenen Namen. Echte teilen sich Namen und wechseln sie.
# $command is the command of a program; $about is the link `about-title`.
accuracy-measured = Wie gemessen wird, und andere Arten von Runden: { $command }. { $about }.
