# The texts of the website in Russian, in the format of Project Fluent. `$count` is a whole number; what other values are
# is said above a text. A translation has the same texts in its own file.

## Texts of several pages

player = Игрок
players-heading = Игроки
points = Очки
server = Сервер
servers-heading = Серверы
game = Игра
games-heading = Игры
map = Карта
maps-heading = Карты
country = Страна
address = Адрес
rank = Ранг
week = Неделя
score = Результат
sessions = Сессии
last-seen = Последний онлайн
since = Вход
share = Доля
hours = Часы
mean-players = Ср. онлайн
player-count = Игроки
nobody = Никого.
none-yet = Пока нет.
no-data-yet = Данных пока нет.
now = сейчас
offline = офлайн
more = Ещё
search = Поиск
find = Найти
# $count of $most, such as 3 of 16 players.
of-most = { $count } из { $most }
# $number may have a decimal, such as 66.7.
percent = { $number } %
# The title of a page: $title is what it shows, $name is that of a server or a game.
title-and-name = { $title }: { $name }
show = Показать
tag = Тег
# Where a list of games, tags, players or maps is empty.
none = Пусто.
winners-feed = Лента победителей каждой недели

## Numbers and times

# $minutes has two digits where hours are before it.
minutes-only = { $minutes } мин
hours-and-minutes = { $hours } ч { $minutes } мин
hours-only = { $hours } ч
month-1 = янв
month-2 = фев
month-3 = мар
month-4 = апр
month-5 = мая
month-6 = июн
month-7 = июл
month-8 = авг
month-9 = сен
month-10 = окт
month-11 = ноя
month-12 = дек
weekday-1 = Пн
weekday-2 = Вт
weekday-3 = Ср
weekday-4 = Чт
weekday-5 = Пт
weekday-6 = Сб
weekday-7 = Вс
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

points-for-winning = очки за победы
rating = сила игры
points-unit = набрано всего
hours-and-minutes-unit = часы и минуты
time-ranking = Время
points-per-minute = очки в минуту
clq1-rewards = Кто быстрее набирает очки: среднее по десяти лучшим отрезкам в 12 минут. Недостающие считаются за 0, поэтому для полного результата нужно 2 часа.
clq1-listed = Чтобы попасть в таблицу, нужно играть 12 минут подряд и набрать очки.
clq2-rewards = Кто заканчивает раунд наверху: чем больше игроков ниже, тем больше очков; складываются десять лучших раундов.
clq2-listed = Чтобы попасть в таблицу, нужно закончить среди лучших раунд, в котором не меньше двух игроков.
elo-rewards = Кто побеждает сильных: в конце раунда каждый забирает очки ELO у тех, кто ниже, или теряет свои.
elo-listed = Чтобы попасть в таблицу, нужно доиграть раунд с другими до конца.
points-rewards = Кто набирает больше очков: считаются все.
time-rewards = Кто дольше играет: считается всё время, от опроса до опроса.
seen-playing-listed = Чтобы попасть в таблицу, достаточно, чтобы опрос застал игрока в игре.

## The frame of all pages

# Where the operator has set no other title and description.
site-title = Игровая статистика
site-description = Игроки онлайн, рейтинги и статистика игровых серверов.
frame-skip = К содержанию
frame-site = Разделы сайта
frame-about = О сайте
frame-search-label = Серверы, игроки, карты
frame-source = Все цифры clqd вычисляет по открытым ответам игровых серверов.
frame-utc = Время указано в UTC.
frame-how = Как это работает и как отказаться от учёта
frame-links = Ссылки сайта
frame-languages = Языки
error-try-again = Повторите через { $seconds } с.
error-first-page = На главную
# A link with error-running-week follows.
error-window = За этот период ничего не сохранено.
error-running-week = К текущей неделе
# A search form follows.
error-player = Такого игрока этот сайт не знает. Найдите его по нику:
# A link to all servers follows, as after the next one.
error-server = Такого сервера этот сайт не знает.
error-server-removed = Этот сервер удалён: здесь его больше нет.
error-not-found = По этому адресу ничего нет. Возможно, он неверный, или то, что здесь было, больше не хранится.
error-bad-request = Что-то в этом адресе использовать нельзя.
problem-bad-request = Неверный запрос
problem-unauthorized = Нужен токен
problem-forbidden = Доступ запрещён
problem-not-found = Не найдено
problem-removed = Удалено
problem-method-not-allowed = Метод не поддерживается
problem-conflict = Сейчас невозможно
problem-uri-too-long = Слишком длинный URI
problem-too-many-requests = Слишком много запросов
problem-internal = Внутренняя ошибка
problem-answer-too-large = Слишком большой ответ
problem-starting = Сервис запускается
problem-stopping = Сервис останавливается
problem-busy = Сервис перегружен
script-add-favourite = ☆ В избранное
# Of a button, for 2 seconds after a click on `script-copy`.
script-copied = Скопировано
# Of a button: to the clipboard.
script-copy = Копировать
# Of a button that is pressed: this server or player is a favourite.
script-favourite = ★ В избранном
script-favourites = Избранное
# After the time of a point of a graph, such as "2026-11-23 14:00: no data".
script-no-data = нет данных
# What is suggested while one types a search.
script-suggestions = Подсказки
# "Yours": in the time zone of the visitor.
script-zone = Время местное; дни и недели — по часовому поясу сайта.

## First page

home-silent = С { $since } не отвечает ни один сервер: похоже, у этого сайта не работает сеть. Пока она не вернётся, данные неполные.
home-busiest = Самые популярные серверы
home-busiest-caption = Серверы, где сейчас больше всего игроков
home-all-servers = Все серверы
home-played = Во что играют
home-played-caption = Игры, где сейчас больше всего игроков
home-no-server = Нет серверов онлайн.
home-all-games = Все игры
# $week is its days, such as 23–29 Nov; so in home-winners.
home-leaders = Лидеры { $week }
home-provisional = До конца недели итоги предварительные.
# $ranking and $unit: CLQ1, points per minute. `clq1-rewards` follows.
home-unit = { $ranking }: { $unit }.
home-no-leaders = Пока никого, или таблицы ещё готовятся после запуска.
home-changed = Что изменилось
home-over-time = График онлайна
home-closed = Завершённые недели
home-winners = Победители { $week }
home-older-weeks = Прошлые недели
home-no-closed = Завершённых недель пока нет.
home-players-online = Игроков онлайн
home-servers-online = Серверов онлайн
home-known-servers = Серверов в базе
home-known-players = Игроков в базе

## Page of a player

# A title. $name is the player's name without colours.
player-title = Игрок { $name }
player-description = Игрок { $name }, { $game }: сессии, недели и лучшие места.
player-first-seen = Первый онлайн
# Instead of a time, after Last seen.
player-playing-now = сейчас в игре
# $servers is links, with spaces between them.
player-playing-on = Сейчас играет на { $servers }
# $game is the name of a game. A table follows: rankings and weeks.
player-rank = Место в { $game }
player-this-week = Эта неделя
# $names is the player's other names, with spaces between them.
player-merged = Объединено с: { $names }
# $games is links, with spaces between them.
player-same-name = Тот же ник в других играх: { $games }
player-weeks = Недели
# The last sentence explains the word that some figures have in their names.
player-weeks-kept = Все недели, которые хранит clqd. Итоги текущей недели предварительные. Оценка — это очки и время между двумя опросами; в рейтинги она не идёт.
player-best-positions = Лучшие места
# The label of a field for a name.
player-compare-with = Сравнить с игроком
# A button.
player-compare = Сравнить
# $week is its days, such as 23–29 Nov. The position is shown below.
player-best-of-week = Лучшее место, { $week }
# A position in a ranking of a server, such as #3 CLQ1 on Warfare.
player-position = #{ $position } { $ranking } на { $server }
# The server on which the player was longest is shown below.
player-most-on = Любимый сервер
player-points-counted = Очки за все сохранённые недели
player-points-estimated = Очки, оценка
player-time-counted = Время за все сохранённые недели
# What one clicks to see estimated points and time.
player-estimates = Оценки
player-time-estimated = Время, оценка
# Explains an estimate such as 1,204 ± 30.
player-estimated-meaning = Вместе с тем, чего не застал ни один опрос. В четырёх случаях из пяти истинное значение отличается не больше чем на второе число.
# The title of a chart, and its unit: hours in each week.
player-hours-played = Время в игре
player-hours-unit = часы за неделю
# The title of a chart. $ranking is such as CLQ1, $server is a name.
player-ranking-on = { $ranking } на { $server }
# What one clicks to see further charts.
player-more-rankings = Каждый рейтинг по неделям
player-weeks-caption = Результаты и места по неделям и серверам
player-sure-rounds = Подтв. раунды
player-sure-rounds-meaning = Подтверждённые раунды: из тех, что идут в зачёт CLQ2 и ELO, те, где победитель известен точно, — опрос застал их конец
# No week.
player-no-weeks = Сохранённых недель нет.
# A link to further weeks on servers.
player-more-weeks = И ещё { $count }
# No position.
player-no-positions = Пока нет: места засчитываются, когда неделя завершена.
player-best-caption = Лучшие места за завершённые недели
player-more-positions = Другие места
# The head of a column with the names of rankings, such as CLQ1.
player-ranking = Рейтинг

## Comparison of two players

compare-two = Сравнить двух игроков
compare-search = Найдите одного из них: форма для сравнения есть на странице каждого игрока.
# Titles. $a, $b and $player are names of players.
compare-both-names = { $a } и { $b }
compare-one = Сравнить: { $player }
compare-no-player = Игрока с ником { $name } нет.
# Which one of the listed players.
compare-which = Кто именно?
compare-both = Оба игрока
# The head of the column with what is compared, for screen readers.
compare-what = Показатель
compare-ahead = Кто был впереди
compare-no-week = Нет ни одной общей недели на одном сервере.
compare-weeks =
    { $count ->
        [one] У обоих { $count } общая неделя на одном сервере.
        [few] У обоих { $count } общие недели на одном сервере.
        [many] У обоих { $count } общих недель на одном сервере.
       *[other] У обоих { $count } общих недель на одном сервере.
    }
compare-counted = Неделя засчитывается в рейтинге, если у обоих есть в нём место.
compare-partial = Сравниваются только последние недели каждого.
compare-ahead-caption = Сколько раз каждый игрок был впереди
compare-by-week = По неделям
compare-by-week-caption = Результаты, лучшее место выделено жирным
# The newest weeks.
compare-newest =
    { $count ->
        [one] Показана последняя { $count } неделя.
        [few] Показаны последние { $count } недели.
        [many] Показаны последние { $count } недель.
       *[other] Показаны последние { $count } недель.
    }

## Sessions of a player or on a server

# No session.
sessions-none = Сохранённых сессий нет.
sessions-measured = От первого опроса, заставшего игрока, до последнего: на деле игрок был на сервере на несколько минут дольше.
sessions-newest = Последние сессии
# Older sessions; the first is what one clicks to see them, the second is the title of their table.
sessions-older = Более ранние
sessions-older-caption = Более ранние сессии
# More sessions.
sessions-as-json = Ещё больше, в JSON
# Heads of columns: the time at which a session ended, and how long it was.
sessions-until = Конец
sessions-for = Время игры
# Instead of a time, of a session that only one scan has seen.
sessions-once = замечен один раз
sessions-last-map = Посл. карта
# $players is a list of links with times.
sessions-companions = Играет вместе с: { $players }
sessions-days-title = Время игрока на сервере по дням
sessions-days-caption = Время игры по дням, UTC
# $largest is hours and minutes, such as 3:05.
sessions-hours-title = Время игры по часам недели. Максимум: { $largest } за один час недели
sessions-hours-caption = Время игры по часам недели, UTC; чем насыщеннее цвет, тем дольше
sessions-players =
    { $count ->
        [one] { $count } игрок.
        [few] { $count } игрока.
        [many] { $count } игроков.
       *[other] { $count } игроков.
    }
sessions-longest = Кто был здесь дольше всех
sessions-more-players = Другие игроки

## Availability of a server

availability-last-days =
    { $count ->
        [one] За { $count } день
        [few] За { $count } дня
        [many] За { $count } дней
       *[other] За { $count } дней
    }
# $percent is a number, with one decimal at most.
availability-of-hours = { $percent } % часов
availability-of-days = { $percent } % дней
# A day is shown below.
availability-known-since = В базе с
availability-title = Сколько часов в день сервер отвечал
# $date is such as 2026-11-23; $count is 0 to 24.
availability-day = { $date }: { $count } ч из 24
availability-unwatched = { $date }: часы, в которые этот сайт не видел ни одного сервера: { $hours }
availability-caption = Часы каждого дня, в которые опрос получил ответ, UTC. Сервер, который опрашивается раз в день, виден в одном часе дня. Светлее и не учитываются: часы, в которые сам этот сайт не видел ни одного сервера.

## Graphs

# In this and the next three texts $title is such as `server-over-32-days`, $unit such as `server-mean-of-an-hour`.
chart-title = { $title }, { $unit }
# $largest is a value, which may have a decimal.
chart-title-largest = { $title }, { $unit }. Максимум: { $largest }
chart-title-newest = { $title }, { $unit }. Последнее: { $newest }. Максимум: { $largest }
# Below a graph; its title is above it.
chart-caption = { $unit }{ $zone }.
# Above a graph: now 12 · peak 35 · mean 20; of ranks, best instead of peak. $value may have a decimal.
chart-now = сейчас { $value }
chart-peak = максимум { $value }
chart-best = лучшее { $value }
chart-mean = среднее { $value }
chart-running = Пунктир: период ещё не закончился.
# A link to the values of the graph.
chart-table = Таблицей

## Players online over time

online-over-25-hours = Игроки онлайн за 25 часов
online-over-32-days = Игроки онлайн за 32 дня
online-over-a-year = Игроки онлайн за год
online-over-all-weeks = Игроки онлайн за все недели
# What a value of the graph is: each server has a mean for each time of this length, and these means are added.
online-means-of-10-minutes = сумма средних по серверам за 10 минут
online-means-of-an-hour = сумма средних по серверам за час
online-means-of-a-day = сумма средних по серверам за день
online-means-of-a-week = сумма средних по серверам за неделю
online-no-data = Данных пока нет: первый десятиминутный отрезок ещё не закончился.
# $unit is such as `online-means-of-an-hour`.
online-caption = Сначала новые{ $zone }. Игроки: { $unit }. Серверы: те, что отвечали.
# The head of a column: the time at which a slot of a graph begins.
online-from = Начало

## Page of a server

# $address is host:port.
server-description-of-game = { $game }, сервер { $address }: кто играет сейчас, график онлайна, рейтинги по неделям, карты.
server-description = Сервер { $address }: кто играет сейчас, график онлайна, рейтинги по неделям, карты.
# Describes a banner.
server-image = Игровой сервер { $url }
server-excluded = Этот сервер исключён из рейтингов.
# $time: when the server was last seen.
server-offline-since = офлайн с { $time }
server-no-answer = Сервер не отвечает.
# The heading of a list.
server-players-now = Сейчас на сервере
server-players-of-day = Игроки за последние 24 часа
server-availability = Доступность
server-busy-hours = Часы пик
server-maps = Карты этой недели
server-best = Лучшие за всё время
server-scanning = Как опрашивается
server-rank = Ранг за прошлую неделю
server-join = Подключиться
# $tags is a list of links.
server-tags = Теги: { $tags }
# Such as 3 of 16 on the map q3dm17; $count and $most are numbers of players.
server-now = { $count } из { $most } на { $map }
server-players-caption = Игроки по последнему опросу
server-ping = Пинг, мс
# After the name of a player in a list, in brackets.
server-spectator = зритель
server-bot = бот или вне рейтинга
server-over-25-hours = Игроки за 25 часов
server-over-32-days = Игроки за 32 дня
server-over-a-year = Игроки за год
server-over-all-weeks = Игроки за все недели
server-ranks = Ранг сервера за 55 недель
# What a value of the graph is: the mean number of players in a time of this length.
server-mean-of-10-minutes = среднее за 10 минут
server-mean-of-an-hour = среднее за час
server-mean-of-a-day = среднее за день
server-mean-of-a-week = среднее за неделю
# What a value of the graph `server-ranks` is.
server-ranks-unit = 1 — первое место; пропуски: вне рейтинга
server-no-slot = Первый десятиминутный отрезок ещё не закончился.
# $most may have a decimal.
server-busy-title = Средний онлайн по часам недели. Максимум: { $most }
server-busy-caption = Средний онлайн по часам недели за 32 дня, UTC; чем насыщеннее цвет, тем больше игроков
server-settings = Настройки сервера
server-settings-caption = Что публикует сервер, с названиями из игры
# The head of a column.
server-setting = Настройка
server-rotation = Ротация карт по опросам
# A list of maps with times follows.
server-rotation-meaning = Последняя карта — первая в списке. Между опросами две минуты, поэтому какая-то карта может быть пропущена.
# $map is a link: the map that has followed the present one each time.
server-next-map = Следующая, как и каждый раз до этого: { $map }
server-maps-caption = Карты, сыгранные с начала недели
server-best-meaning = Игроки с лучшими местами за завершённые недели, включая те, что уже не хранятся.
# $ranking is such as CLQ1.
server-best-caption = Лучшие места в { $ranking }
# The head of a column; the newest week with it is in the next one.
server-best-positions = Лучшее место
# Such as 1 in 2026-W47.
server-position-in-week = { $position }-е за { $week }
# $unit is such as `server-mean-of-an-hour`.
server-series-caption = { $unit }, сначала новые{ $zone }
server-value = Значение
server-queried = Адрес опроса
server-class = Класс
server-missed = Опросов подряд без ответа
server-coverage = Доля этой недели под наблюдением
server-authentication = Проверка подлинности ответов
server-no-reply = нет ответов с запуска clqd
# A list follows.
server-screened = Часть ответов сервера не использована:
# $reason is a word of a program, $time when it was last the reason.
server-screened-last = { $reason }, последний раз: { $time }
server-classes = Класс 1 опрашивается каждые 2 минуты, 2 — каждые 10 минут, 3 — раз в час, 4 — раз в день, 5 — раз в неделю; 6 и 7 не отвечают.

## Banners of a server or a player

banners-heading = Фрейм и баннеры
banners-frame = Фрейм для сайта: что сейчас на сервере или у игрока.
banners-frame-html = Фрейм, HTML
banners-codes = Коды для вставки на форумы и сайты. Большинство форумов принимает BBCode; некоторым нужен только адрес картинки, он заканчивается на .png.
# $size is `banners-wide`, `banners-box`, `banners-small` or `banners-card`.
banners-size = { $size }, { $width } × { $height } пикс.
banners-html = { $size }, HTML
banners-bbcode = { $size }, BBCode
banners-wide = Широкий
banners-box = Блок
banners-small = Малый
banners-card = Карточка
banner-players = { $players }/{ $slots } игроков
banner-rank = ранг { $rank }
banner-at = в { $time } UTC
banner-seen = онлайн { $time } UTC
banner-never = онлайна не было
banner-points = очки: { $points }
banner-not-seen = на этой неделе не было
banner-origin = { $game }, { $server }
banner-graph = игроки за 25 часов

## Frames of other sites

embed-players = Игроков: { $count } из { $most }
# $map is a link.
embed-players-on-map = Игроков: { $count } из { $most } на { $map }
# The next two are of a player.
embed-playing-now = сейчас в игре
embed-last-seen = последний онлайн: { $day }
# $server is a link.
embed-playing-on = { $game }, сейчас играет на { $server }
embed-game-last-seen = { $game }, последний онлайн: { $time }
embed-never-seen = { $game }, последний онлайн: никогда

## Boards

# $window is a week, a day or another period: 2026-W47, or 16 to 22 Nov 2026 (2026-W47).
boards-rankings-of = Рейтинги за { $window }
# $ranking is the name of a ranking, such as ELO.
boards-ranking-in = { $ranking } за { $window }
# For those who hear the page. $ranking is the name of a ranking, $scope that of a server, a game or a tag.
boards-table-of = { $ranking }: { $scope }
boards-all-rankings = Все рейтинги
# A link from the best players to all.
boards-all-players = Все игроки ({ $count })
boards-find-player = Найти игрока в таблице
# $name is what the visitor has entered.
boards-not-found = Не найдено: в этой таблице нет игрока, в нике которого есть { $name }.
# Links to the first page of a board, to better positions, to further positions, and to the last page.
boards-pages = Страницы таблицы
boards-first = В начало
boards-better = Выше
boards-further = Ниже
boards-last = В конец
# $first and $last are positions: 51 to 100 of 1,204 players.
boards-shown =
    { $count ->
        [one] { $first }–{ $last } из { $count } игрока
        [few] { $first }–{ $last } из { $count } игроков
        [many] { $first }–{ $last } из { $count } игроков
       *[other] { $first }–{ $last } из { $count } игроков
    }
# The state of a week or another period.
boards-closed = Период завершён: итоги окончательные.
boards-running = Период идёт: итоги предварительные.
# Follows boards-running or home-provisional: of the time of the week. $share is such as 66.7 %.
boards-coverage = Серверы были под наблюдением { $share } времени.
# The period that is shown.
boards-window = Период
# Explains the head # of a column.
boards-position = место
# The head of a column: when a player reached the score.
boards-reached = Достигнуто
# The head of the column with the next three: how many positions a player has moved since the week before.
boards-change = Изм.
boards-new = новый
boards-up = +{ $count }
boards-down = −{ $count }
boards-no-player = Игроков пока нет.
# What has changed since the week before. $player and $game are links; $position is mover-position, $up is mover-up-from.
mover-up = { $player } — { $position } в { $game }, { $up } прошлой недели.
mover-new = { $player } — { $position } в { $game }, на прошлой неделе — вне рейтинга.
# In mover-up and mover-new, bold: number 3.
mover-position = { $position }-е место
# In mover-up, coloured; $before is the position in the week before.
mover-up-from = подъём с { $before }-го места
# Follows mover-up or mover-new: when the player reached the score.
mover-score = Результат от { $time }.

## Games and tags

groups-games-caption = Игры с серверами онлайн
groups-tags = Теги
groups-tags-caption = Теги серверов онлайн
groups-most-played = { $count } с наибольшим числом игроков, из { $most }.
# The heading of the page of a game, and of that of a tag.
groups-game = Игра { $name }
groups-tag = Тег { $name }
groups-peak = Максимум игроков за 25 часов
groups-servers-of-game = Все серверы этой игры
groups-servers-of-tag = Все серверы с этим тегом
# For search engines. $name is that of a game or a tag.
groups-description = { $name }: серверы онлайн, график онлайна и рейтинги по неделям.

## Maps

map-none-yet = Пока нет: данные могут запаздывать до десяти минут.
# $count: at most 200 maps.
map-list-caption = Самые популярные карты за все хранимые недели на всех серверах; не больше { $count }
# The head of a column with the number of weeks.
map-week-count = Недели
map-share = Доля времени
map-title = Карта { $name }
map-players-now = Игроков сейчас
map-servers-now = Серверы с этой картой сейчас
map-servers-caption = Серверы с этой картой, сначала с наибольшим числом игроков
map-hours-title = Время в игре всех игроков
# The heading of a table with a row for each week.
map-weeks = Недели
map-weeks-caption = Сколько играли на этой карте по неделям, на всех серверах. Итоги текущей недели предварительные.
map-player-hours = Часы всех игроков
# For search engines.
map-description = Карта { $name }: сколько на ней играли по неделям и на каких серверах она идёт сейчас.

## Tables of servers

server-table-25-hours = 25 часов
# The head of the column that says when a server was seen: now, a time, or never.
server-table-seen = В сети
server-table-never = никогда
# Of a server.
server-table-not-ranked = вне рейтинга
server-table-none = Серверов нет.
# Of a server: as many players as it can have.
server-table-full = заполнен
server-table-not-believed = Сервер сообщает больше игроков, чем может вместить. Это число не учитывается.

## List of servers

servers-further = Следующие серверы
servers-caption-added = Все серверы в порядке добавления
servers-caption-players = Серверы онлайн, сначала с наибольшим числом игроков
servers-caption-rank = Серверы с рангом, сначала лучшие за последнюю завершённую неделю
servers-caption-name = Серверы, которые отвечают, по названию
# The filters. servers-all is the choice of all games, tags, countries or states.
servers-contains = Название, адрес или карта
servers-all = все
servers-state = Статус
servers-online = онлайн
# How the list is ordered: by the time when servers were added, by players, by rank, by name.
servers-order = Сортировка
servers-order-added = по добавлению
servers-order-players = по игрокам
servers-order-rank = по рангу
servers-order-name = по названию

## Search

# A heading.
search-title = Поиск
search-enter = Введите ник игрока или название сервера, игры или карты.
# $text is what the visitor has entered.
search-for = Поиск: { $text }
# After the name of a player, and a comma or a space.
search-last-seen = последний онлайн: { $time }
search-more-players = Это не все. Уточните запрос.
search-players-caption = Игроки, чей ник подходит под текст
# The head of a column with positions. $ranking is CLQ1.
search-rank = { $ranking } на этой неделе
# $text is what the visitor has entered.
search-nothing = По запросу { $text } ничего не найдено: этого текста нет ни в нике, ни в названии сервера, игры или карты, ни в адресе сервера. Регистр букв не важен.
search-servers-caption = Серверы с подходящим названием или адресом
search-more-servers = Возможно, это не все. Уточните запрос.
search-games-and-maps = Игры и карты
# $name is that of a game, which is said after it; so in search-map.
search-game = { $name }, игра
search-map = { $name }, карта
# After the name of a server: 3/16 on q3dm17.
search-players-on = { $players } на { $map }

## Feeds

# $name is that of a server or a game.
feeds-title = { $name }: победители недели
# $ranking is the name of a ranking; a list of players follows.
feeds-ranking = { $ranking }:

## How it works

about-title = Как это работает
about-scans = Каждый игровой сервер отвечает на небольшой запрос: какая карта, кто играет и сколько у кого очков. Сайт опрашивает каждый сервер так часто, как тот заслуживает, — от раза в две минуты до раза в неделю — и сравнивает каждый ответ с предыдущим. Уже из этого видно, кто пришёл, кто ушёл, кто набрал очки и когда закончился раунд. Плагины серверам не нужны.
about-rankings = Рейтинги
about-windows = Каждый рейтинг считается за неделю для каждого сервера, игры и тега, а ещё за другие периоды, заданные в настройках сайта.
about-clq1 = CLQ1, очки в минуту
about-clq1-meaning = Как быстро игрок набирает очки. Игра делится на отрезки по 12 минут; результат — среднее по десяти лучшим отрезкам недели. Недостающие считаются за 0, поэтому для полного результата нужно 2 часа.
about-clq2 = CLQ2, очки за победы
about-clq2-meaning = Кто оказывается вверху списка в конце раундов: чем больше игроков ниже, тем больше очков.
about-elo = ELO, сила игры
about-elo-meaning = Каждый раунд — это матч каждого игрока с каждым. Побеждает тот, кто выше, и забирает у соперника очки ELO.
about-points-meaning = Все очки, набранные за неделю.
about-time-meaning = Время на сервере.
about-example = Пример
# Visor is the name of a player; Points and Time are the rankings `points` and `time-ranking`.
about-example-of-scans = Опрос в 20:00 показывает, что у Visor 10 очков, следующий, в 20:02, — что 14. За 120 секунд игры набрано 4 очка: к рейтингу «Очки» прибавляется 4, к рейтингу «Время» — 2 минуты, а скорость на этом отрезке — 4 / 2 = 2 очка в минуту. Если опрос в 20:04 показывает 2 очка и новую карту, значит, раунд закончился: список от 20:02, последний увиденный, идёт в зачёт CLQ2 и ELO.
# $accuracy is the link `about-accuracy`.
about-measured = Насколько рейтинги близки к тому, что было на самом деле, измерено: { $accuracy }.
about-accuracy = точность
about-unknown = Чего узнать нельзя
about-unseen = Что происходит между двумя опросами: заход на минуту можно не заметить, а очки после последнего опроса раунда не видны. Оценки того, что осталось за кадром, показаны отдельно и в рейтинги не идут.
about-same-names = Кто скрывается за ником: игроков различают только по никам. Два человека с одним ником в одной игре — это один игрок.
about-untrue = Говорит ли сервер правду. Неправдоподобные ответы не используются; почему — сказано на странице сервера.
about-figures = Цифры
about-players = Игроки сервера — по его последнему ответу. На графиках — средние значения; пропуск означает, что ответа не было.
about-provisional = Итоги текущей недели предварительные. Окончательными они становятся, когда неделя завершена.
about-opting-out = Как отказаться от учёта
about-how-to-opt-out = Владельцам серверов: если сервер не нужно опрашивать или показывать либо он опрашивается слишком часто, напишите администратору сайта. Игрокам: ник и все его данные удаляются по запросу, и этот ник больше никогда не сохраняется.
about-contact = Контакт: { $contact }
about-no-contact = Контакт: администратор его не указал.

## Accuracy

accuracy-title = Точность
accuracy-heading = Насколько рейтинги близки к тому, что было на самом деле
accuracy-simulation = Никто не сообщает сайту, что произошло на сервере. Он видит только списки игроков, примерно один в две минуты. Сколько при этом теряется, можно измерить там, где известно всё, — в симуляции. В ней неделя на 48 серверах, около 45 000 раундов по 5–40 минут, а игроки приходят и уходят когда хотят. Серверы опрашивает та же программа, на которой работает сайт, и её рейтинги сравниваются с истинными.
accuracy-rounds = Раунды и суммы
# Heads of columns; they are explained by the texts `accuracy-...-meaning`.
accuracy-scans = опросы
accuracy-time = время
accuracy-points = очки
accuracy-found = найдено
accuracy-winner = победитель
accuracy-top-3 = топ-3
accuracy-sure = подтв.
accuracy-right = верно
# $number has decimals, such as +1.3.
accuracy-order = Порядок игроков
accuracy-scans-meaning = Опросы: сколько раз опрошен каждый сервер за две минуты. * Через равные промежутки; все остальные опросы делаются тогда, когда дают больше всего, например незадолго до конца раунда. 1,13 — столько делает программа, если администратор не задал другое.
# The heads of columns that the next text explains.
accuracy-time-points = время, очки
accuracy-time-points-meaning = Сумма по всем игрокам в сравнении с тем, сколько они на самом деле сыграли и набрали.
accuracy-found-winner-top-3 = найдено, победитель, топ-3
accuracy-found-winner-top-3-meaning = Сколько раундов найдено, сколько — с верным победителем, сколько — с верной первой тройкой. Раунд не найден, если он был слишком коротким или никто не остался.
accuracy-sure-right = подтв., верно
accuracy-sure-right-meaning = Сколько из найденных раундов подтверждено (опрос застал их конец) и у скольких из них победитель верный.
accuracy-order-of-players = порядок игроков
accuracy-order-of-players-meaning = Насколько порядок игроков на сервере совпадает с истинным: 1 — тот же порядок, 0 — случайный.
accuracy-known = Что рейтинг может знать, а что нет
accuracy-who-played = Кто играл и как долго, известно с точностью до промежутка между двумя опросами.
accuracy-unseen = Очки между последним опросом раунда и его концом не видны. Поэтому суммы очков занижены.
accuracy-estimates = Оценки времени и очков включают то, чего не застал ни один опрос. У каждой есть погрешность: в четырёх случаях из пяти истинное значение отличается не больше чем на неё.
accuracy-closer = Порядок игроков ближе к истине, чем суммы.
accuracy-honest = Игроки в симуляции честные, и у каждого свой ник. У настоящих ники совпадают и меняются.
# $command is the command of a program; $about is the link `about-title`.
accuracy-measured = Как это измерено и какие ещё бывают раунды: { $command }. { $about }.
