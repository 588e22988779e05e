# The texts of the website in English, in the format of Project Fluent. `$count` is a whole number; what other values are
# is said above a text. A translation has the same texts in its own file.

## Texts of several pages

player = Player
players-heading = Players
points = Points
server = Server
servers-heading = Servers
game = Game
games-heading = Games
map = Map
maps-heading = Maps
country = Country
address = Address
rank = Rank
week = Week
score = Score
sessions = Sessions
last-seen = Last seen
since = Since
share = Share
hours = Hours
mean-players = Mean players
player-count = Players
nobody = Nobody.
none-yet = None yet.
no-data-yet = No data yet.
now = now
offline = offline
more = More
search = Search
find = Find
# $count of $most, such as 3 of 16 players.
of-most = { $count } of { $most }
# $number may have a decimal, such as 66.7.
percent = { $number } %
# The title of a page: $title is what it shows, $name is that of a server or a game.
title-and-name = { $title }: { $name }
show = Show
tag = Tag
# Where a list of games, tags, players or maps is empty.
none = None.
winners-feed = The winners of each week as a feed

## Numbers and times

# $minutes has two digits where hours are before it.
minutes-only = { $minutes } min
hours-and-minutes = { $hours } h { $minutes } min
hours-only = { $hours } h
month-1 = Jan
month-2 = Feb
month-3 = Mar
month-4 = Apr
month-5 = May
month-6 = Jun
month-7 = Jul
month-8 = Aug
month-9 = Sep
month-10 = Oct
month-11 = Nov
month-12 = Dec
weekday-1 = Mon
weekday-2 = Tue
weekday-3 = Wed
weekday-4 = Thu
weekday-5 = Fri
weekday-6 = Sat
weekday-7 = Sun
# A day or a period of days: 23 Nov 2026; 23 to 29 Nov 2026; 23 Nov to 2 Dec 2026.
date = { $day } { $month } { $year }
# A day in a table or below a graph: 9 Nov.
short-date = { $day } { $month }
days-of-month = { $first } to { $day } { $month } { $year }
days-of-months = { $first_day } { $first_month } to { $day } { $month } { $year }
# A week in a table: 23–29 Nov; 30 Nov – 6 Dec.
short-days-of-month = { $first }–{ $day } { $month }
short-days-of-months = { $first_day } { $first_month } – { $day } { $month }

## Rankings

points-for-winning = points for winning
rating = rating
points-unit = collected in all
hours-and-minutes-unit = hours and minutes
time-ranking = Time
points-per-minute = points per minute
clq1-rewards = Rewards collecting points fast: the mean of the ten best stretches of 12 minutes. Missing ones count as 0, so a full score needs 2 hours.
clq1-listed = To be listed, play 12 minutes in a row and score.
clq2-rewards = Rewards being at the top when a round ends: the more players are below, the more points; the ten best rounds are added.
clq2-listed = To be listed, be among the best at the end of a round of two players or more.
elo-rewards = Rewards beating strong players: at the end of a round everyone takes rating from those below, or loses it.
elo-listed = To be listed, play a round with others to its end.
points-rewards = Rewards collecting many points: all count.
time-rewards = Rewards staying: all time counts, measured between two scans.
seen-playing-listed = To be listed, be seen playing.

## The frame of all pages

# Where the operator has set no other title and description.
site-title = Game statistics
site-description = Players online, rankings and statistics of game servers.
frame-skip = Skip to the content
frame-site = Site
frame-about = About
frame-search-label = Servers, players, maps
frame-source = Every figure is computed from the public answers of game servers, by clqd.
frame-utc = Times are in UTC.
frame-how = How it works, and how to opt out
frame-links = Links of the site
frame-languages = Languages
error-try-again = Try again in { $seconds } s.
error-first-page = To the first page
# A link with error-running-week follows.
error-window = Nothing is kept of this period.
error-running-week = To the running week
# A search form follows.
error-player = This site knows no such player. Search for the name:
# A link to all servers follows, as after the next one.
error-server = This site knows no such server.
error-server-removed = This server was removed: it is no longer listed here.
error-not-found = There is nothing at this address. It may be wrong, or what was here is no longer kept.
error-bad-request = Something in this address cannot be used.
problem-bad-request = Invalid request
problem-unauthorized = A token is needed
problem-forbidden = Not permitted
problem-not-found = Not found
problem-removed = Removed
problem-method-not-allowed = Method not allowed
problem-conflict = Not possible now
problem-uri-too-long = URI too long
problem-too-many-requests = Too many requests
problem-internal = Internal error
problem-answer-too-large = The answer is too large
problem-starting = The daemon is starting
problem-stopping = The daemon is stopping
problem-busy = The daemon is busy
script-add-favourite = ☆ Add to favourites
# Of a button, for 2 seconds after a click on `script-copy`.
script-copied = Copied
# Of a button: to the clipboard.
script-copy = Copy
# Of a button that is pressed: this server or player is a favourite.
script-favourite = ★ Favourite
script-favourites = Your favourites
# After the time of a point of a graph, such as "2026-11-23 14:00: no data".
script-no-data = no data
# What is suggested while one types a search.
script-suggestions = Suggestions
# "Yours": in the time zone of the visitor.
script-zone = Times are yours; days and weeks are those of this site.

## First page

home-silent = No server answers since { $since }: the network of this site seems to be down. Until it is back, figures are not complete.
home-busiest = Busiest servers
home-busiest-caption = Servers with most players now
home-all-servers = All servers
home-played = What is played
home-played-caption = Games with most players now
home-no-server = No server is online.
home-all-games = All games
# $week is its days, such as 23–29 Nov; so in home-winners.
home-leaders = Leaders of { $week }
home-provisional = Provisional until the week ends.
# $ranking and $unit: CLQ1, points per minute. `clq1-rewards` follows.
home-unit = { $ranking }: { $unit }.
home-no-leaders = None yet, or still in preparation after a start.
home-changed = What has changed
home-over-time = Players over time
home-closed = Closed weeks
home-winners = Winners of { $week }
home-older-weeks = Older weeks
home-no-closed = No week has been closed yet.
home-players-online = Players online
home-servers-online = Servers online
home-known-servers = Known servers
home-known-players = Known players

## Page of a player

# A title. $name is the player's name without colours.
player-title = Player { $name }
player-description = Player { $name } of { $game }: sessions, weeks and best positions.
player-first-seen = First seen
# Instead of a time, after Last seen.
player-playing-now = playing now
# $servers is links, with spaces between them.
player-playing-on = Playing now on { $servers }
# $game is the name of a game. A table follows: rankings and weeks.
player-rank = Rank in { $game }
player-this-week = This week
# $names is the player's other names, with spaces between them.
player-merged = Merged with: { $names }
# $games is links, with spaces between them.
player-same-name = The same name in other games: { $games }
player-weeks = Weeks
# The last sentence explains the word that some figures have in their names.
player-weeks-kept = All weeks that clqd keeps. The running week is provisional. Estimated: points and time between two scans, never ranked.
player-best-positions = Best positions
# The label of a field for a name.
player-compare-with = Compare with the player
# A button.
player-compare = Compare
# $week is its days, such as 23–29 Nov. The position is shown below.
player-best-of-week = Best position, { $week }
# A position in a ranking of a server, such as #3 CLQ1 on Warfare.
player-position = #{ $position } { $ranking } on { $server }
# The server on which the player was longest is shown below.
player-most-on = Most on
player-points-counted = Points in all kept weeks
player-points-estimated = Points, estimated
player-time-counted = Time in all kept weeks
# What one clicks to see estimated points and time.
player-estimates = Estimates
player-time-estimated = Time, estimated
# Explains an estimate such as 1,204 ± 30.
player-estimated-meaning = With what no scan has seen. In four cases of five the true value is not further away than the second number.
# The title of a chart, and its unit: hours in each week.
player-hours-played = Hours played
player-hours-unit = hours in each week
# The title of a chart. $ranking is such as CLQ1, $server is a name.
player-ranking-on = { $ranking } on { $server }
# What one clicks to see further charts.
player-more-rankings = Each ranking by week
player-weeks-caption = Scores and positions by week and server
player-sure-rounds = Sure rounds
player-sure-rounds-meaning = Of the rounds that count for CLQ2 and ELO, those whose winner is sure: a scan saw their end
# No week.
player-no-weeks = None is kept.
# A link to further weeks on servers.
player-more-weeks = And { $count } more
# No position.
player-no-positions = None yet: positions count when a week is closed.
player-best-caption = The best positions in closed weeks
player-more-positions = More positions
# The head of a column with the names of rankings, such as CLQ1.
player-ranking = Ranking

## Comparison of two players

compare-two = Compare two players
compare-search = Search for one of them: the page of each player has a form.
# Titles. $a, $b and $player are names of players.
compare-both-names = { $a } and { $b }
compare-one = Compare { $player }
compare-no-player = No player has the name { $name }.
# Which one of the listed players.
compare-which = Which one?
compare-both = Both players
# The head of the column with what is compared, for screen readers.
compare-what = What
compare-ahead = Who was ahead
compare-no-week = No week on a server has both of them.
compare-weeks =
    { $count ->
        [one] Both have { $count } week on the same server.
       *[other] Both have { $count } weeks on the same server.
    }
compare-counted = A week counts for a ranking in which both have a position.
compare-partial = Only the newest weeks of each are compared.
compare-ahead-caption = How often each player was ahead
compare-by-week = Week by week
compare-by-week-caption = Scores, the better position in bold
# The newest weeks.
compare-newest = The newest { $count } are shown.

## Sessions of a player or on a server

# No session.
sessions-none = None is kept.
sessions-measured = From the first scan that saw the player to the last one: the player was there some minutes longer.
sessions-newest = The newest sessions
# Older sessions; the first is what one clicks to see them, the second is the title of their table.
sessions-older = Older ones
sessions-older-caption = Older sessions
# More sessions.
sessions-as-json = More of them, as JSON
# Heads of columns: the time at which a session ended, and how long it was.
sessions-until = Until
sessions-for = For
# Instead of a time, of a session that only one scan has seen.
sessions-once = seen once
sessions-last-map = Last map
# $players is a list of links with times.
sessions-companions = Plays with { $players }
sessions-days-title = Times at which the player was on a server, by day
sessions-days-caption = When the player played, UTC
# $largest is hours and minutes, such as 3:05.
sessions-hours-title = Hours of the week in which the player played. Most: { $largest } in an hour of the week
sessions-hours-caption = Hours of the week in which the player plays, UTC; stronger colour: longer
sessions-players =
    { $count ->
        [one] { $count } player.
       *[other] { $count } players.
    }
sessions-longest = Players who were here longest
sessions-more-players = More players

## Availability of a server

availability-last-days = Last { $count } days
# $percent is a number, with one decimal at most.
availability-of-hours = { $percent } % of the hours
availability-of-days = { $percent } % of the days
# A day is shown below.
availability-known-since = Known since
availability-title = Hours of each day in which the server was seen
# $date is such as 2026-11-23; $count is 0 to 24.
availability-day = { $date }: { $count } of 24 hours
availability-unwatched = { $date }: hours in which this site saw no server: { $hours }
availability-caption = Hours of each day in which a scan got an answer, UTC. A server that is asked once a day is seen in one hour of a day. Lighter, and not counted: hours in which this site itself saw no server.

## Graphs

# In this and the next three texts $title is such as `server-over-32-days`, $unit such as `server-mean-of-an-hour`.
chart-title = { $title }, { $unit }
# $largest is a value, which may have a decimal.
chart-title-largest = { $title }, { $unit }. Largest: { $largest }
chart-title-newest = { $title }, { $unit }. Newest: { $newest }. Largest: { $largest }
# Below a graph; its title is above it.
chart-caption = { $unit }{ $zone }.
# Above a graph: now 12 · peak 35 · mean 20; of ranks, best instead of peak. $value may have a decimal.
chart-now = now { $value }
chart-peak = peak { $value }
chart-best = best { $value }
chart-mean = mean { $value }
chart-running = The dashed end is still running.
# A link to the values of the graph.
chart-table = As a table

## Players online over time

online-over-25-hours = Players online over 25 hours
online-over-32-days = Players online over 32 days
online-over-a-year = Players online over a year
online-over-all-weeks = Players online over all weeks
# What a value of the graph is: each server has a mean for each time of this length, and these means are added.
online-means-of-10-minutes = sum of the servers' means of 10 minutes
online-means-of-an-hour = sum of the servers' means of an hour
online-means-of-a-day = sum of the servers' means of a day
online-means-of-a-week = sum of the servers' means of a week
online-no-data = There is no data yet: the first slot of ten minutes has not ended.
# $unit is such as `online-means-of-an-hour`.
online-caption = Newest first{ $zone }. Players: { $unit }. Servers: those that were seen.
# The head of a column: the time at which a slot of a graph begins.
online-from = From

## Page of a server

# $address is host:port.
server-description-of-game = { $game } server at { $address }: players now and over time, rankings by week, maps.
server-description = server at { $address }: players now and over time, rankings by week, maps.
# Describes a banner.
server-image = Game server { $url }
server-excluded = This server is excluded from rankings.
# $time: when the server was last seen.
server-offline-since = offline since { $time }
server-no-answer = The server does not answer.
# The heading of a list.
server-players-now = Players now
server-players-of-day = Players of the last 24 hours
server-availability = Availability
server-busy-hours = Busy hours
server-maps = Maps of this week
server-best = All-time best
server-scanning = How it is scanned
server-rank = Rank of the last closed week
server-join = Join the game
# $tags is a list of links.
server-tags = Tags: { $tags }
# Such as 3 of 16 on the map q3dm17; $count and $most are numbers of players.
server-now = { $count } of { $most } on { $map }
server-players-caption = Players of the last scan
server-ping = Ping, ms
# After the name of a player in a list, in brackets.
server-spectator = spectator
server-bot = bot, or not ranked
server-over-25-hours = Players over 25 hours
server-over-32-days = Players over 32 days
server-over-a-year = Players over a year
server-over-all-weeks = Players over all weeks
server-ranks = Rank of the server over 55 weeks
# What a value of the graph is: the mean number of players in a time of this length.
server-mean-of-10-minutes = mean of 10 minutes
server-mean-of-an-hour = mean of an hour
server-mean-of-a-day = mean of a day
server-mean-of-a-week = mean of a week
# What a value of the graph `server-ranks` is.
server-ranks-unit = 1 is the first; gaps: not ranked
server-no-slot = The first slot of ten minutes has not ended yet.
# $most may have a decimal.
server-busy-title = Mean players in each hour of the week. Most: { $most }
server-busy-caption = Mean players in each hour of the week over 32 days, UTC; stronger colour: more
server-settings = Settings of the server
server-settings-caption = What the server publishes, by the names of the game
# The head of a column.
server-setting = Setting
server-rotation = Order of the maps as seen
# A list of maps with times follows.
server-rotation-meaning = The newest map is the first one. Scans two minutes apart may miss a map.
# $map is a link: the map that has followed the present one each time.
server-next-map = Next, as each time before: { $map }
server-maps-caption = Maps that were played since the start of the week
server-best-meaning = The players with the best positions in closed weeks, also in those that are no longer kept.
# $ranking is such as CLQ1.
server-best-caption = Best positions in { $ranking }
# The head of a column; the newest week with it is in the next one.
server-best-positions = Best position
# Such as 1 in 2026-W47.
server-position-in-week = { $position } in { $week }
# $unit is such as `server-mean-of-an-hour`.
server-series-caption = { $unit }, newest first{ $zone }
server-value = Value
server-queried = Queried at
server-class = Class
server-missed = Missed scans in a row
server-coverage = Share of this week in which it was seen
server-authentication = Authentication of its replies
server-no-reply = no reply since the start of clqd
# A list follows.
server-screened = Parts of its answers were not used:
# $reason is a word of a program, $time when it was last the reason.
server-screened-last = { $reason }, last { $time }
server-classes = Class 1 is scanned every 2 minutes, 2 every 10 minutes, 3 hourly, 4 daily, 5 weekly; 6 and 7 do not answer.

## Banners of a server or a player

banners-heading = Frame and banners
banners-frame = A frame with what is on the server or of the player now, for a website.
banners-frame-html = Frame, HTML
banners-codes = Embed codes for forums and websites. Most forums accept BBCode; some need only the address of the image, which ends in .png.
# $size is `banners-wide`, `banners-box`, `banners-small` or `banners-card`.
banners-size = { $size }, { $width } x { $height } pixels
banners-html = { $size }, HTML
banners-bbcode = { $size }, BBCode
banners-wide = Wide
banners-box = Box
banners-small = Small
banners-card = Card
# In an image of a few pixels, so short.
banner-players = { $players }/{ $slots } players
banner-rank = rank { $rank }
# $time: 14:05.
banner-at = at { $time } UTC
# $time: 2026-11-23 14:05. Of a server that is offline.
banner-seen = seen { $time } UTC
banner-never = never seen
banner-points = { $points } points
# Of a player.
banner-not-seen = not seen this week
banner-origin = { $game } on { $server }
# Below a graph of the last 25 hours.
banner-graph = players, 25 hours

## Frames of other sites

embed-players = { $count } of { $most } players
# $map is a link.
embed-players-on-map = { $count } of { $most } players on { $map }
# The next two are of a player.
embed-playing-now = playing now
embed-last-seen = last seen { $day }
# $server is a link.
embed-playing-on = { $game }, playing now on { $server }
embed-game-last-seen = { $game }, last seen { $time }
embed-never-seen = { $game }, never seen

## Boards

# $window is a week, a day or another period: 2026-W47, or 16 to 22 Nov 2026 (2026-W47).
boards-rankings-of = Rankings of { $window }
# $ranking is the name of a ranking, such as ELO.
boards-ranking-in = { $ranking } in { $window }
# For those who hear the page. $ranking is the name of a ranking, $scope that of a server, a game or a tag.
boards-table-of = { $ranking } of { $scope }
boards-all-rankings = All rankings
# A link from the best players to all.
boards-all-players =
    { $count ->
        [one] All { $count } player
       *[other] All { $count } players
    }
boards-find-player = Find a player on this board
# $name is what the visitor has entered.
boards-not-found = Not found: no player whose name has the words { $name } is on this board.
# Links to the first page of a board, to better positions, to further positions, and to the last page.
boards-pages = Pages of the board
boards-first = First
boards-better = Better
boards-further = Further
boards-last = Last
# $first and $last are positions: 51 to 100 of 1,204 players.
boards-shown =
    { $count ->
        [one] { $first } to { $last } of { $count } player
       *[other] { $first } to { $last } of { $count } players
    }
# The state of a week or another period.
boards-closed = Closed: final.
boards-running = Running: provisional.
# Follows boards-running or home-provisional: of the time of the week. $share is such as 66.7 %.
boards-coverage = Servers were seen in { $share } of its time.
# The period that is shown.
boards-window = Window
# Explains the head # of a column.
boards-position = position
# The head of a column: when a player reached the score.
boards-reached = Reached
# The head of the column with the next three: how many positions a player has moved since the week before.
boards-change = Change
boards-new = new
boards-up = up { $count }
boards-down = down { $count }
boards-no-player = No player yet.
# What has changed since the week before. $player and $game are links; $position is mover-position, $up is mover-up-from.
mover-up = { $player } is { $position } of { $game }, { $up } in the week before.
mover-new = { $player } is { $position } of { $game }, and was not ranked in the week before.
# In mover-up and mover-new, bold: number 3.
mover-position = number { $position }
# In mover-up, coloured; $before is the position in the week before.
mover-up-from = up from { $before }
# Follows mover-up or mover-new: when the player reached the score.
mover-score = Score of { $time }.

## Games and tags

groups-games-caption = Games with servers online
groups-tags = Tags
groups-tags-caption = Tags of servers that are online
groups-most-played = The { $count } with most players, of { $most }.
# The heading of the page of a game, and of that of a tag.
groups-game = Game { $name }
groups-tag = Tag { $name }
groups-peak = Most players in 25 hours
groups-servers-of-game = All servers of this game
groups-servers-of-tag = All servers of this tag
# For search engines. $name is that of a game or a tag.
groups-description = { $name }: servers online, players over time, and rankings by week.

## Maps

map-none-yet = None yet: these figures are up to ten minutes old.
# $count: at most 200 maps.
map-list-caption = The maps that were played most in all kept weeks, on all servers; at most { $count }
# The head of a column with the number of weeks.
map-week-count = Weeks
map-share = Share of all play
map-title = Map { $name }
map-players-now = Players now
map-servers-now = Servers that play it now
map-servers-caption = Servers with this map, most players first
map-hours-title = Hours played by all players
# The heading of a table with a row for each week.
map-weeks = Weeks
map-weeks-caption = How much the map was played in each week, on all servers. The running week is provisional.
map-player-hours = Hours of all players
# For search engines.
map-description = The map { $name }: how much it was played by week, and the servers that play it now.

## Tables of servers

server-table-25-hours = 25 hours
# The head of the column that says when a server was seen: now, a time, or never.
server-table-seen = Seen
server-table-never = never
# Of a server.
server-table-not-ranked = not ranked
server-table-none = No server.
# Of a server: as many players as it can have.
server-table-full = full
server-table-not-believed = The server announces more players than it can have. This number is not used.

## List of servers

servers-further = Further servers
servers-caption-added = All servers, in the order in which they were added
servers-caption-players = Servers online, most players first
servers-caption-rank = Ranked servers, the best of the last closed week first
servers-caption-name = Servers that answer, by name
# The filters. servers-all is the choice of all games, tags, countries or states.
servers-contains = Name, address or map contains
servers-all = all
servers-state = State
servers-online = online
# How the list is ordered: by the time when servers were added, by players, by rank, by name.
servers-order = Order
servers-order-added = added
servers-order-players = players
servers-order-rank = rank
servers-order-name = name

## Search

# A heading.
search-title = Search
search-enter = Enter the name of a server, player, game or map.
# $text is what the visitor has entered.
search-for = Search for { $text }
# After the name of a player, and a comma or a space.
search-last-seen = last seen { $time }
search-more-players = There are more. A longer text finds fewer.
search-players-caption = Players whose name fits the text
# The head of a column with positions. $ranking is CLQ1.
search-rank = { $ranking } this week
# $text is what the visitor has entered.
search-nothing = Nothing was found for { $text }: no name of a player, server, game or map has this text in it, nor an address of a server. Capital and small letters are the same.
search-servers-caption = Servers whose name or address fits the text
search-more-servers = There may be more. A longer text finds fewer.
search-games-and-maps = Games and maps
# $name is that of a game, which is said after it; so in search-map.
search-game = { $name }, game
search-map = { $name }, map
# After the name of a server: 3/16 on q3dm17.
search-players-on = { $players } on { $map }

## Feeds

# $name is that of a server or a game.
feeds-title = { $name }: winners of the week
# $ranking is the name of a ranking; a list of players follows.
feeds-ranking = { $ranking }:

## How it works

about-title = How it works
about-scans = Each game server answers a small query: its map, its players and their points. This site asks every server at the pace it deserves, from every two minutes to once a week, and compares each answer with the one before. From that alone it knows who came, who left, who scored and when a round ended. Servers need no plugin.
about-rankings = Rankings
about-windows = Each ranking is computed for a week, for every server, game and tag, and in further windows of time that the site has configured.
about-clq1 = CLQ1, points per minute
about-clq1-meaning = How fast a player collects points. Play is divided into segments of 12 minutes; the score is the mean of the ten best segments of the week. Missing ones count as 0, so a full score needs 2 hours.
about-clq2 = CLQ2, points for winning
about-clq2-meaning = Reaching the top of the list at the end of rounds: the more players are below, the more points.
about-elo = ELO, rating
about-elo-meaning = Every round is a match of each player against every other. The one in the higher position wins, and takes rating from the other.
about-points-meaning = All points collected in the week.
about-time-meaning = Time on the server.
about-example = An example
# Visor is the name of a player; Points and Time are the rankings `points` and `time-ranking`.
about-example-of-scans = A scan at 20:00 shows Visor with 10 points, the next one at 20:02 with 14. Visor has played 120 seconds and collected 4 points: 4 are added to Points and 2 minutes to Time, and in this piece of play the speed was 4 / 2 = 2 points per minute. If the scan at 20:04 shows 2 points and a new map, a round has ended: the list of 20:02, the last one that was seen, is rated for CLQ2 and ELO.
# $accuracy is the link `about-accuracy`.
about-measured = How close the rankings come to what happened is measured: { $accuracy }.
about-accuracy = accuracy
about-unknown = What cannot be known
about-unseen = What happens between two scans: a stay of a minute may be missed, and points after the last scan of a round are not seen. Estimates of that are shown separately and never ranked.
about-same-names = Who a player is: players are identified by their names. Two people with the same name in one game are one player.
about-untrue = Whether a server tells the truth. Implausible answers are not used; the page of a server says why.
about-figures = Figures
about-players = Players of a server: of its last answer. Graphs show means; a gap means that no answer was received.
about-provisional = A running week is provisional. It is final when it is closed.
about-opting-out = Opting out
about-how-to-opt-out = Operators of a server: if it shall not be scanned or listed, or is scanned too often, write to the operator of this site. Players: a name and all of its data are deleted on request, and the name is never stored again.
about-contact = Contact: { $contact }
about-no-contact = Contact: the operator has not set one.

## Accuracy

accuracy-title = Accuracy
accuracy-heading = How close the rankings come to what happened
accuracy-simulation = Nobody tells this site what happened on a server. It only sees lists of players, one every two minutes or so. How much that misses can be measured where everything is known: in a simulation. It has a week of 48 servers and some 45,000 rounds of 5 to 40 minutes, with players who come and leave as they like. The program that runs this site scans them, and its rankings are compared with the true ones.
accuracy-rounds = Rounds and sums
# Heads of columns; they are explained by the texts `accuracy-...-meaning`.
accuracy-scans = scans
accuracy-time = time
accuracy-points = points
accuracy-found = found
accuracy-winner = winner
accuracy-top-3 = top 3
accuracy-sure = sure
accuracy-right = right
# $number has decimals, such as +1.3.
accuracy-order = Order of players
accuracy-scans-meaning = Scans: of each server in two minutes. * At fixed times; all others are made when they tell most, such as shortly before the end of a round. 1.13 is what the program makes unless its operator says otherwise.
# The heads of columns that the next text explains.
accuracy-time-points = time, points
accuracy-time-points-meaning = The sum over all players, compared with what they truly played and scored.
accuracy-found-winner-top-3 = found, winner, top 3
accuracy-found-winner-top-3-meaning = How many of the rounds were found, with the right winner, with the right first three. A round is not found if it was too short, or nobody stayed.
accuracy-sure-right = sure, right
accuracy-sure-right-meaning = How many of the found rounds are marked as sure, because a scan saw their end, and how many of these have the right winner.
accuracy-order-of-players = order of players
accuracy-order-of-players-meaning = How well the order of the players on a server agrees with the true order: 1 is the same order, 0 is chance.
accuracy-known = What a ranking can know, and what not
accuracy-who-played = Who played, and for how long, is known as exactly as the time between two scans.
accuracy-unseen = Points between the last scan of a round and its end are not seen. So sums of points are too low.
accuracy-estimates = Estimates of time and points include what no scan saw. Each has an error: in four cases of five the true value is not further away.
accuracy-closer = The order of players is closer to the truth than the sums.
accuracy-honest = The simulated players are honest, and each has a name of their own. Real ones share names and change them.
# $command is the command of a program; $about is the link `about-title`.
accuracy-measured = How it is measured, and other kinds of rounds: { $command }. { $about }.
