# The texts of the website in Spanish, in the format of Project Fluent. `$count` is a whole number; what other values are
# is said above a text. A translation has the same texts in its own file.

## Texts of several pages

player = Jugador
players-heading = Jugadores
points = Puntos
server = Servidor
servers-heading = Servidores
game = Juego
games-heading = Juegos
map = Mapa
maps-heading = Mapas
country = País
address = Dirección
rank = Puesto
week = Semana
score = Puntuación
sessions = Sesiones
last-seen = Última vez
since = Desde
share = Porcentaje
hours = Horas
mean-players = Media jug.
player-count = Jugadores
nobody = Nadie.
none-yet = Aún no hay.
no-data-yet = Aún no hay datos.
now = ahora
offline = offline
more = Más
search = Buscar
find = Buscar
# $count of $most, such as 3 of 16 players.
of-most = { $count } de { $most }
# $number may have a decimal, such as 66.7.
percent = { $number } %
# The title of a page: $title is what it shows, $name is that of a server or a game.
title-and-name = { $title }: { $name }
show = Mostrar
tag = Etiqueta
# Where a list of games, tags, players or maps is empty.
none = Sin resultados.
winners-feed = Feed con los ganadores de cada semana

## Numbers and times

# $minutes has two digits where hours are before it.
minutes-only = { $minutes } min
hours-and-minutes = { $hours } h { $minutes } min
hours-only = { $hours } h
month-1 = ene
month-2 = feb
month-3 = mar
month-4 = abr
month-5 = may
month-6 = jun
month-7 = jul
month-8 = ago
month-9 = sep
month-10 = oct
month-11 = nov
month-12 = dic
weekday-1 = lun
weekday-2 = mar
weekday-3 = mié
weekday-4 = jue
weekday-5 = vie
weekday-6 = sáb
weekday-7 = dom
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

points-for-winning = puntos por ganar
rating = rating
points-unit = sumados en total
hours-and-minutes-unit = horas y minutos
time-ranking = Tiempo
points-per-minute = puntos por minuto
clq1-rewards = Premia sumar puntos rápido: la media de los diez mejores tramos de 12 minutos. Los que faltan cuentan como 0: una puntuación completa requiere 2 horas.
clq1-listed = Para entrar en la tabla hay que jugar 12 minutos seguidos y puntuar.
clq2-rewards = Premia estar arriba cuando termina una ronda: cuantos más jugadores quedan por debajo, más puntos; se suman las diez mejores rondas.
clq2-listed = Para entrar en la tabla hay que acabar entre los mejores en una ronda de dos jugadores o más.
elo-rewards = Premia ganar a jugadores fuertes: al terminar una ronda, cada uno quita rating a los que quedan por debajo, o lo pierde.
elo-listed = Para entrar en la tabla hay que jugar una ronda con otros hasta el final.
points-rewards = Premia sumar muchos puntos: cuentan todos.
time-rewards = Premia quedarse: cuenta todo el tiempo, medido entre dos escaneos.
seen-playing-listed = Para entrar en la tabla basta con que se te vea jugando.

## The frame of all pages

# Where the operator has set no other title and description.
site-title = Estadísticas de juego
site-description = Jugadores en línea, clasificaciones y estadísticas de servidores de juego.
frame-skip = Saltar al contenido
frame-site = Sitio
frame-about = Acerca de
frame-search-label = Servidores, jugadores, mapas
frame-source = clqd calcula todos los datos a partir de las respuestas públicas de los servidores de juego.
frame-utc = Las horas están en UTC.
frame-how = Cómo funciona y cómo darse de baja
frame-links = Enlaces del sitio
frame-languages = Idiomas
error-try-again = Prueba otra vez en { $seconds } s.
error-first-page = Ir al inicio
# A link with error-running-week follows.
error-window = No se guarda nada de este período.
error-running-week = A la semana en curso
# A search form follows.
error-player = Este sitio no conoce a ese jugador. Busca el nombre:
# A link to all servers follows, as after the next one.
error-server = Este sitio no conoce ese servidor.
error-server-removed = Este servidor se ha eliminado: ya no aparece aquí.
error-not-found = No hay nada en esta dirección. Puede ser incorrecta, o lo que había aquí ya no se guarda.
error-bad-request = Algo en esta dirección no se puede usar.
problem-bad-request = Solicitud no válida
problem-unauthorized = Hace falta un token
problem-forbidden = No permitido
problem-not-found = No encontrado
problem-removed = Eliminado
problem-method-not-allowed = Método no permitido
problem-conflict = Ahora no es posible
problem-uri-too-long = URI demasiado larga
problem-too-many-requests = Demasiadas solicitudes
problem-internal = Error interno
problem-answer-too-large = La respuesta es demasiado grande
problem-starting = El servicio se está iniciando
problem-stopping = El servicio se está deteniendo
problem-busy = El servicio está ocupado
script-add-favourite = ☆ Añadir a favoritos
# Of a button, for 2 seconds after a click on `script-copy`.
script-copied = Copiado
# Of a button: to the clipboard.
script-copy = Copiar
# Of a button that is pressed: this server or player is a favourite.
script-favourite = ★ Favorito
script-favourites = Tus favoritos
# After the time of a point of a graph, such as "2026-11-23 14:00: no data".
script-no-data = sin datos
# What is suggested while one types a search.
script-suggestions = Sugerencias
# "Yours": in the time zone of the visitor.
script-zone = Las horas están en tu zona horaria; los días y semanas, en la de este sitio.

## First page

home-silent = Ningún servidor responde desde { $since }: la red de este sitio parece caída. Hasta que vuelva, las cifras están incompletas.
home-busiest = Servidores más activos
home-busiest-caption = Servidores con más jugadores ahora
home-all-servers = Todos los servidores
home-played = A qué se juega
home-played-caption = Juegos con más jugadores ahora
home-no-server = No hay ningún servidor online.
home-all-games = Todos los juegos
# $week is its days, such as 23–29 Nov; so in home-winners.
home-leaders = Líderes del { $week }
home-provisional = Provisional hasta que termine la semana.
# $ranking and $unit: CLQ1, points per minute. `clq1-rewards` follows.
home-unit = { $ranking }: { $unit }.
home-no-leaders = Aún no hay, o se están preparando tras un reinicio.
home-changed = Qué ha cambiado
home-over-time = Evolución de jugadores
home-closed = Semanas cerradas
home-winners = Ganadores del { $week }
home-older-weeks = Semanas anteriores
home-no-closed = Aún no se ha cerrado ninguna semana.
home-players-online = Jugadores online
home-servers-online = Servidores online
home-known-servers = Servidores conocidos
home-known-players = Jugadores conocidos

## Page of a player

# A title. $name is the player's name without colours.
player-title = Jugador { $name }
player-description = Jugador { $name } de { $game }: sesiones, semanas y mejores posiciones.
player-first-seen = Primera vez
# Instead of a time, after Last seen.
player-playing-now = jugando ahora
# $servers is links, with spaces between them.
player-playing-on = Jugando ahora en { $servers }
# $game is the name of a game. A table follows: rankings and weeks.
player-rank = Puesto en { $game }
player-this-week = Esta semana
# $names is the player's other names, with spaces between them.
player-merged = Nombres fusionados: { $names }
# $games is links, with spaces between them.
player-same-name = El mismo nombre en otros juegos: { $games }
player-weeks = Semanas
# The last sentence explains the word that some figures have in their names.
player-weeks-kept = Todas las semanas que guarda clqd. La semana en curso es provisional. Estimados: puntos y tiempo entre dos escaneos; nunca cuentan para los rankings.
player-best-positions = Mejores posiciones
# The label of a field for a name.
player-compare-with = Comparar con el jugador
# A button.
player-compare = Comparar
# $week is its days, such as 23–29 Nov. The position is shown below.
player-best-of-week = Mejor posición, { $week }
# A position in a ranking of a server, such as #3 CLQ1 on Warfare.
player-position = #{ $position } { $ranking } en { $server }
# The server on which the player was longest is shown below.
player-most-on = Más tiempo en
player-points-counted = Puntos en todas las semanas guardadas
player-points-estimated = Puntos estimados
player-time-counted = Tiempo en todas las semanas guardadas
# What one clicks to see estimated points and time.
player-estimates = Estimaciones
player-time-estimated = Tiempo estimado
# Explains an estimate such as 1,204 ± 30.
player-estimated-meaning = Incluye lo que ningún escaneo ha visto. En cuatro de cada cinco casos, la diferencia con el valor real no supera el segundo número.
# The title of a chart, and its unit: hours in each week.
player-hours-played = Horas jugadas
player-hours-unit = horas por semana
# The title of a chart. $ranking is such as CLQ1, $server is a name.
player-ranking-on = { $ranking } en { $server }
# What one clicks to see further charts.
player-more-rankings = Cada ranking por semanas
player-weeks-caption = Puntuaciones y posiciones por semana y servidor
player-sure-rounds = Confirmadas
player-sure-rounds-meaning = De las rondas que cuentan para CLQ2 y ELO, las que tienen un ganador seguro: un escaneo vio su final
# No week.
player-no-weeks = No se guarda ninguna.
# A link to further weeks on servers.
player-more-weeks = Y { $count } más
# No position.
player-no-positions = Aún no hay: las posiciones cuentan cuando se cierra la semana.
player-best-caption = Las mejores posiciones en semanas cerradas
player-more-positions = Más posiciones
# The head of a column with the names of rankings, such as CLQ1.
player-ranking = Ranking

## Comparison of two players

compare-two = Comparar dos jugadores
compare-search = Busca a uno de ellos: la página de cada jugador tiene un formulario.
# Titles. $a, $b and $player are names of players.
compare-both-names = { $a } y { $b }
compare-one = Comparar a { $player }
compare-no-player = No hay ningún jugador con el nombre { $name }.
# Which one of the listed players.
compare-which = ¿Cuál de ellos?
compare-both = Ambos jugadores
# The head of the column with what is compared, for screen readers.
compare-what = Dato
compare-ahead = Quién quedó por delante
compare-no-week = No coinciden en ningún servidor en ninguna semana.
compare-weeks =
    { $count ->
        [one] Coinciden en el mismo servidor { $count } semana.
       *[other] Coinciden en el mismo servidor { $count } semanas.
    }
compare-counted = Una semana cuenta para un ranking si ambos tienen una posición en él.
compare-partial = Solo se comparan las semanas más recientes de cada uno.
compare-ahead-caption = Cuántas veces quedó por delante cada jugador
compare-by-week = Semana a semana
compare-by-week-caption = Puntuaciones; la mejor posición, en negrita
# The newest weeks.
compare-newest =
    { $count ->
        [one] Se muestra { $count }, la más reciente.
       *[other] Se muestran las { $count } más recientes.
    }

## Sessions of a player or on a server

# No session.
sessions-none = No se guarda ninguna.
sessions-measured = Desde el primer escaneo que vio al jugador hasta el último: en realidad estuvo unos minutos más.
sessions-newest = Las sesiones más recientes
# Older sessions; the first is what one clicks to see them, the second is the title of their table.
sessions-older = Anteriores
sessions-older-caption = Sesiones anteriores
# More sessions.
sessions-as-json = Más sesiones, en JSON
# Heads of columns: the time at which a session ended, and how long it was.
sessions-until = Hasta
sessions-for = Duración
# Instead of a time, of a session that only one scan has seen.
sessions-once = visto una vez
sessions-last-map = Último mapa
# $players is a list of links with times.
sessions-companions = Juega con { $players }
sessions-days-title = Horas a las que el jugador estuvo en un servidor, por día
sessions-days-caption = Cuándo jugó, en UTC
# $largest is hours and minutes, such as 3:05.
sessions-hours-title = Horas de la semana en las que jugó. Máximo: { $largest } en una hora de la semana
sessions-hours-caption = Horas de la semana en las que juega, en UTC; color más intenso: más tiempo
sessions-players =
    { $count ->
        [one] { $count } jugador.
       *[other] { $count } jugadores.
    }
sessions-longest = Jugadores que más tiempo estuvieron aquí
sessions-more-players = Más jugadores

## Availability of a server

availability-last-days =
    { $count ->
        [one] Último día
       *[other] Últimos { $count } días
    }
# $percent is a number, with one decimal at most.
availability-of-hours = { $percent } % de las horas
availability-of-days = { $percent } % de los días
# A day is shown below.
availability-known-since = Conocido desde
availability-title = Horas de cada día en las que se vio el servidor
# $date is such as 2026-11-23; $count is 0 to 24.
availability-day = { $date }: { $count } de 24 horas
availability-unwatched = { $date }: horas en las que este sitio no vio ningún servidor: { $hours }
availability-caption = Horas de cada día en las que un escaneo obtuvo respuesta, en UTC. Un servidor que se consulta una vez al día solo se ve en una hora de cada día. Más claras y no contadas: horas en las que este sitio no vio ningún servidor.

## Graphs

# In this and the next three texts $title is such as `server-over-32-days`, $unit such as `server-mean-of-an-hour`.
chart-title = { $title }, { $unit }
# $largest is a value, which may have a decimal.
chart-title-largest = { $title }, { $unit }. Máximo: { $largest }
chart-title-newest = { $title }, { $unit }. Último: { $newest }. Máximo: { $largest }
# Below a graph; its title is above it.
chart-caption = { $unit }{ $zone }.
# Above a graph: now 12 · peak 35 · mean 20; of ranks, best instead of peak. $value may have a decimal.
chart-now = ahora { $value }
chart-peak = máximo { $value }
chart-best = mejor { $value }
chart-mean = media { $value }
chart-running = El tramo discontinuo sigue en curso.
# A link to the values of the graph.
chart-table = Ver como tabla

## Players online over time

online-over-25-hours = Jugadores online en las últimas 25 horas
online-over-32-days = Jugadores online en los últimos 32 días
online-over-a-year = Jugadores online en el último año
online-over-all-weeks = Jugadores online en todas las semanas
# What a value of the graph is: each server has a mean for each time of this length, and these means are added.
online-means-of-10-minutes = suma de las medias de 10 minutos de los servidores
online-means-of-an-hour = suma de las medias por hora de los servidores
online-means-of-a-day = suma de las medias por día de los servidores
online-means-of-a-week = suma de las medias por semana de los servidores
online-no-data = Aún no hay datos: no ha terminado el primer intervalo de diez minutos.
# $unit is such as `online-means-of-an-hour`.
online-caption = Lo más reciente primero{ $zone }. Jugadores: { $unit }. Servidores: los que se vieron.
# The head of a column: the time at which a slot of a graph begins.
online-from = Desde

## Page of a server

# $address is host:port.
server-description-of-game = Servidor de { $game } en { $address }: jugadores ahora y a lo largo del tiempo, rankings por semana, mapas.
server-description = Servidor en { $address }: jugadores ahora y a lo largo del tiempo, rankings por semana, mapas.
# Describes a banner.
server-image = Servidor de juego { $url }
server-excluded = Este servidor está excluido de los rankings.
# $time: when the server was last seen.
server-offline-since = offline desde el { $time }
server-no-answer = El servidor no responde.
# The heading of a list.
server-players-now = Jugadores ahora
server-players-of-day = Jugadores de las últimas 24 horas
server-availability = Disponibilidad
server-busy-hours = Horas con más jugadores
server-maps = Mapas de esta semana
server-best = Los mejores de siempre
server-scanning = Cómo se escanea
server-rank = Puesto de la última semana cerrada
server-join = Entrar a jugar
# $tags is a list of links.
server-tags = Etiquetas: { $tags }
# Such as 3 of 16 on the map q3dm17; $count and $most are numbers of players.
server-now = { $count } de { $most } en { $map }
server-players-caption = Jugadores del último escaneo
server-ping = Ping, ms
# After the name of a player in a list, in brackets.
server-spectator = espectador
server-bot = bot, o fuera del ranking
server-over-25-hours = Jugadores en las últimas 25 horas
server-over-32-days = Jugadores en los últimos 32 días
server-over-a-year = Jugadores en el último año
server-over-all-weeks = Jugadores en todas las semanas
server-ranks = Puesto del servidor en las últimas 55 semanas
# What a value of the graph is: the mean number of players in a time of this length.
server-mean-of-10-minutes = media de 10 minutos
server-mean-of-an-hour = media por hora
server-mean-of-a-day = media por día
server-mean-of-a-week = media por semana
# What a value of the graph `server-ranks` is.
server-ranks-unit = 1 es el primero; huecos: fuera del ranking
server-no-slot = Aún no ha terminado el primer intervalo de diez minutos.
# $most may have a decimal.
server-busy-title = Media de jugadores en cada hora de la semana. Máximo: { $most }
server-busy-caption = Media de jugadores en cada hora de la semana en los últimos 32 días, en UTC; color más intenso: más jugadores
server-settings = Ajustes del servidor
server-settings-caption = Lo que publica el servidor, con los nombres que usa el juego
# The head of a column.
server-setting = Ajuste
server-rotation = Orden observado de los mapas
# A list of maps with times follows.
server-rotation-meaning = El mapa más reciente es el primero. Con dos minutos entre escaneos puede faltar algún mapa.
# $map is a link: the map that has followed the present one each time.
server-next-map = Siguiente, como todas las veces anteriores: { $map }
server-maps-caption = Mapas jugados desde el inicio de la semana
server-best-meaning = Los jugadores con las mejores posiciones en semanas cerradas, incluidas las que ya no se guardan.
# $ranking is such as CLQ1.
server-best-caption = Mejores posiciones en { $ranking }
# The head of a column; the newest week with it is in the next one.
server-best-positions = Mejor posición
# Such as 1 in 2026-W47.
server-position-in-week = { $position } en { $week }
# $unit is such as `server-mean-of-an-hour`.
server-series-caption = { $unit }, lo más reciente primero{ $zone }
server-value = Valor
server-queried = Consultado en
server-class = Clase
server-missed = Escaneos fallidos seguidos
server-coverage = Visto esta semana
server-authentication = Autenticación de sus respuestas
server-no-reply = sin respuesta desde el inicio de clqd
# A list follows.
server-screened = Partes de sus respuestas que no se usaron:
# $reason is a word of a program, $time when it was last the reason.
server-screened-last = { $reason }, última vez el { $time }
server-classes = La clase 1 se escanea cada 2 minutos; la 2, cada 10 minutos; la 3, cada hora; la 4, cada día; la 5, cada semana; la 6 y la 7 no responden.

## Banners of a server or a player

banners-heading = Marco y banners
banners-frame = Un marco para tu web con el estado actual del servidor o del jugador.
banners-frame-html = Marco, HTML
banners-codes = Códigos para insertar en foros y webs. La mayoría de los foros admite BBCode; algunos solo necesitan la dirección de la imagen, que termina en .png.
# $size is `banners-wide`, `banners-box`, `banners-small` or `banners-card`.
banners-size = { $size }, { $width } x { $height } píxeles
banners-html = { $size }, HTML
banners-bbcode = { $size }, BBCode
banners-wide = Ancho
banners-box = Cuadro
banners-small = Pequeño
banners-card = Tarjeta
banner-players = { $players }/{ $slots } jugadores
banner-rank = puesto { $rank }
banner-at = a las { $time } UTC
banner-seen = visto el { $time } UTC
banner-never = nunca visto
banner-points = { $points } puntos
banner-not-seen = sin jugar esta semana
banner-origin = { $game } en { $server }
banner-graph = jugadores, 25 horas

## Frames of other sites

embed-players = { $count } de { $most } jugadores
# $map is a link.
embed-players-on-map = { $count } de { $most } jugadores en { $map }
# The next two are of a player.
embed-playing-now = jugando ahora
embed-last-seen = última vez el { $day }
# $server is a link.
embed-playing-on = { $game }, jugando ahora en { $server }
embed-game-last-seen = { $game }, última vez el { $time }
embed-never-seen = { $game }, nunca visto

## Boards

# $window is a week, a day or another period: 2026-W47, or 16 to 22 Nov 2026 (2026-W47).
boards-rankings-of = Rankings de { $window }
# $ranking is the name of a ranking, such as ELO.
boards-ranking-in = { $ranking } en { $window }
# For those who hear the page. $ranking is the name of a ranking, $scope that of a server, a game or a tag.
boards-table-of = { $ranking } de { $scope }
boards-all-rankings = Todos los rankings
# A link from the best players to all.
boards-all-players =
    { $count ->
        [one] Ver { $count } jugador
       *[other] Ver los { $count } jugadores
    }
boards-find-player = Buscar un jugador en esta tabla
# $name is what the visitor has entered.
boards-not-found = No encontrado: en esta tabla no hay ningún jugador con las palabras { $name } en el nombre.
# Links to the first page of a board, to better positions, to further positions, and to the last page.
boards-pages = Páginas de la tabla
boards-first = Primera
boards-better = Anteriores
boards-further = Siguientes
boards-last = Última
# $first and $last are positions: 51 to 100 of 1,204 players.
boards-shown =
    { $count ->
        [one] { $first } a { $last } de { $count } jugador
       *[other] { $first } a { $last } de { $count } jugadores
    }
# The state of a week or another period.
boards-closed = Periodo cerrado: definitivo.
boards-running = Periodo en curso: provisional.
# Follows boards-running or home-provisional: of the time of the week. $share is such as 66.7 %.
boards-coverage = Los servidores se vieron durante el { $share } del tiempo.
# The period that is shown.
boards-window = Periodo
# Explains the head # of a column.
boards-position = posición
# The head of a column: when a player reached the score.
boards-reached = Logrado
# The head of the column with the next three: how many positions a player has moved since the week before.
boards-change = Cambio
boards-new = nuevo
boards-up = sube { $count }
boards-down = baja { $count }
boards-no-player = Aún no hay jugadores.
# What has changed since the week before. $player and $game are links; $position is mover-position, $up is mover-up-from.
mover-up = { $player } es { $position } de { $game }: { $up } de la semana anterior.
mover-new = { $player } es { $position } de { $game }; la semana anterior no estaba en el ranking.
# In mover-up and mover-new, bold: number 3.
mover-position = n.º { $position }
# In mover-up, coloured; $before is the position in the week before.
mover-up-from = sube desde el n.º { $before }
# Follows mover-up or mover-new: when the player reached the score.
mover-score = Puntuación del { $time }.

## Games and tags

groups-games-caption = Juegos con servidores online
groups-tags = Etiquetas
groups-tags-caption = Etiquetas de los servidores online
groups-most-played = Los { $count } con más jugadores, de { $most }.
# The heading of the page of a game, and of that of a tag.
groups-game = Juego { $name }
groups-tag = Etiqueta { $name }
groups-peak = Máximo de jugadores en 25 horas
groups-servers-of-game = Todos los servidores de este juego
groups-servers-of-tag = Todos los servidores con esta etiqueta
# For search engines. $name is that of a game or a tag.
groups-description = { $name }: servidores online, jugadores a lo largo del tiempo y rankings por semana.

## Maps

map-none-yet = Aún no hay: estos datos tienen hasta diez minutos de retraso.
# $count: at most 200 maps.
map-list-caption = Los mapas más jugados en todas las semanas guardadas, en todos los servidores; como máximo { $count }
# The head of a column with the number of weeks.
map-week-count = Semanas
map-share = % del total
map-title = Mapa { $name }
map-players-now = Jugadores ahora
map-servers-now = Servidores que lo juegan ahora
map-servers-caption = Servidores con este mapa, de más a menos jugadores
map-hours-title = Horas jugadas entre todos los jugadores
# The heading of a table with a row for each week.
map-weeks = Semanas
map-weeks-caption = Cuánto se jugó el mapa cada semana, en todos los servidores. La semana en curso es provisional.
map-player-hours = Horas de todos
# For search engines.
map-description = El mapa { $name }: cuánto se jugó cada semana y los servidores que lo juegan ahora.

## Tables of servers

server-table-25-hours = 25 horas
# The head of the column that says when a server was seen: now, a time, or never.
server-table-seen = Visto
server-table-never = nunca
# Of a server.
server-table-not-ranked = fuera del ranking
server-table-none = Ningún servidor.
# Of a server: as many players as it can have.
server-table-full = lleno
server-table-not-believed = El servidor anuncia más jugadores de los que puede tener. Este número no se usa.

## List of servers

servers-further = Más servidores
servers-caption-added = Todos los servidores, en el orden en que se añadieron
servers-caption-players = Servidores online, de más a menos jugadores
servers-caption-rank = Servidores del ranking, primero los mejores de la última semana cerrada
servers-caption-name = Servidores que responden, por nombre
# The filters. servers-all is the choice of all games, tags, countries or states.
servers-contains = Nombre, dirección o mapa contiene
servers-all = cualquiera
servers-state = Estado
servers-online = online
# How the list is ordered: by the time when servers were added, by players, by rank, by name.
servers-order = Orden
servers-order-added = fecha de alta
servers-order-players = jugadores
servers-order-rank = puesto
servers-order-name = nombre

## Search

# A heading.
search-title = Buscar
search-enter = Escribe el nombre de un servidor, jugador, juego o mapa.
# $text is what the visitor has entered.
search-for = Resultados para { $text }
# After the name of a player, and a comma or a space.
search-last-seen = última vez el { $time }
search-more-players = Hay más. Un texto más largo da menos resultados.
search-players-caption = Jugadores cuyo nombre coincide con el texto
# The head of a column with positions. $ranking is CLQ1.
search-rank = { $ranking } esta semana
# $text is what the visitor has entered.
search-nothing = No se encontró nada para { $text }: ningún nombre de jugador, servidor, juego o mapa contiene este texto, ni tampoco la dirección de un servidor. No importan las mayúsculas.
search-servers-caption = Servidores con el texto en el nombre o la dirección
search-more-servers = Puede haber más. Un texto más largo da menos resultados.
search-games-and-maps = Juegos y mapas
# $name is that of a game, which is said after it; so in search-map.
search-game = { $name }, juego
search-map = { $name }, mapa
# After the name of a server: 3/16 on q3dm17.
search-players-on = { $players } en { $map }

## Feeds

# $name is that of a server or a game.
feeds-title = { $name }: ganadores de la semana
# $ranking is the name of a ranking; a list of players follows.
feeds-ranking = { $ranking }:

## How it works

about-title = Cómo funciona
about-scans = Cada servidor de juego responde a una consulta pequeña: su mapa, sus jugadores y los puntos de cada uno. Este sitio consulta cada servidor al ritmo que merece, desde cada dos minutos hasta una vez por semana, y compara cada respuesta con la anterior. Solo con eso sabe quién entró, quién se fue, quién sumó puntos y cuándo terminó una ronda. Los servidores no necesitan ningún plugin.
about-rankings = Rankings
about-windows = Cada ranking se calcula por semana para cada servidor, juego y etiqueta, y también para otros periodos que el sitio tenga configurados.
about-clq1 = CLQ1, puntos por minuto
about-clq1-meaning = Lo rápido que un jugador suma puntos. El tiempo de juego se divide en segmentos de 12 minutos; la puntuación es la media de los diez mejores segmentos de la semana. Los que faltan cuentan como 0: una puntuación completa requiere 2 horas.
about-clq2 = CLQ2, puntos por ganar
about-clq2-meaning = Llegar a lo más alto de la lista al final de las rondas: cuantos más jugadores quedan por debajo, más puntos.
about-elo = ELO, rating
about-elo-meaning = Cada ronda es un duelo de cada jugador contra todos los demás. Gana el que queda en mejor posición, y le quita rating al otro.
about-points-meaning = Todos los puntos sumados en la semana.
about-time-meaning = Tiempo en el servidor.
about-example = Un ejemplo
# Visor is the name of a player; Points and Time are the rankings `points` and `time-ranking`.
about-example-of-scans = Un escaneo a las 20:00 muestra a Visor con 10 puntos; el siguiente, a las 20:02, con 14. Visor ha jugado 120 segundos y ha sumado 4 puntos: se añaden 4 a Puntos y 2 minutos a Tiempo, y en este tramo de juego la velocidad fue de 4 / 2 = 2 puntos por minuto. Si el escaneo de las 20:04 muestra 2 puntos y un mapa nuevo, ha terminado una ronda: la lista de las 20:02, la última que se vio, cuenta para CLQ2 y ELO.
# $accuracy is the link `about-accuracy`.
about-measured = Cuánto se acercan los rankings a lo que pasó está medido: { $accuracy }.
about-accuracy = precisión
about-unknown = Lo que no se puede saber
about-unseen = Lo que pasa entre dos escaneos: una visita de un minuto puede pasar inadvertida, y los puntos posteriores al último escaneo de una ronda no se ven. Las estimaciones de eso se muestran aparte y nunca cuentan para los rankings.
about-same-names = Quién es cada jugador: los jugadores se identifican por su nombre. Dos personas con el mismo nombre en un juego son un solo jugador.
about-untrue = Si un servidor dice la verdad. Las respuestas poco creíbles no se usan; la página del servidor dice por qué.
about-figures = Datos
about-players = Jugadores de un servidor: los de su última respuesta. Los gráficos muestran medias; un hueco significa que no llegó ninguna respuesta.
about-provisional = La semana en curso es provisional. Es definitiva cuando se cierra.
about-opting-out = Darse de baja
about-how-to-opt-out = Si administras un servidor y no quieres que se escanee o aparezca aquí, o se escanea demasiado, escribe al responsable de este sitio. Si juegas, puedes pedir que se borren un nombre y todos sus datos; ese nombre no se volverá a guardar.
about-contact = Contacto: { $contact }
about-no-contact = Contacto: el responsable no ha indicado ninguno.

## Accuracy

accuracy-title = Precisión
accuracy-heading = Cuánto se acercan los rankings a lo que pasó
accuracy-simulation = Nadie le dice a este sitio qué pasó en un servidor. Solo ve listas de jugadores, una cada dos minutos más o menos. Cuánto se pierde así se puede medir donde se sabe todo: en una simulación. Contiene una semana de 48 servidores y unas 45.000 rondas de 5 a 40 minutos, con jugadores que entran y salen cuando quieren. El programa con el que funciona este sitio los escanea, y sus rankings se comparan con los verdaderos.
accuracy-rounds = Rondas y sumas
# Heads of columns; they are explained by the texts `accuracy-...-meaning`.
accuracy-scans = escaneos
accuracy-time = tiempo
accuracy-points = puntos
accuracy-found = detectadas
accuracy-winner = ganador
accuracy-top-3 = top 3
accuracy-sure = confirmadas
accuracy-right = correctas
# $number has decimals, such as +1.3.
accuracy-order = Orden de los jugadores
accuracy-scans-meaning = Escaneos: de cada servidor en dos minutos. * A horas fijas; todos los demás se hacen cuando más aportan, por ejemplo poco antes del final de una ronda. 1,13 es lo que hace el programa, salvo que su responsable indique otra cosa.
# The heads of columns that the next text explains.
accuracy-time-points = tiempo, puntos
accuracy-time-points-meaning = La suma de todos los jugadores, comparada con lo que de verdad jugaron y puntuaron.
accuracy-found-winner-top-3 = detectadas, ganador, top 3
accuracy-found-winner-top-3-meaning = Cuántas de las rondas se detectaron, con el ganador correcto, con los tres primeros correctos. Una ronda no se detecta si fue demasiado corta o si no se quedó nadie.
accuracy-sure-right = confirmadas, correctas
accuracy-sure-right-meaning = Cuántas de las rondas detectadas están marcadas como confirmadas, porque un escaneo vio su final, y cuántas de estas tienen el ganador correcto.
accuracy-order-of-players = orden de los jugadores
accuracy-order-of-players-meaning = Hasta qué punto el orden de los jugadores de un servidor coincide con el verdadero: 1 es el mismo orden, 0 es puro azar.
accuracy-known = Qué puede saber un ranking y qué no
accuracy-who-played = Quién jugó, y durante cuánto tiempo, se sabe con la exactitud que permite el tiempo entre dos escaneos.
accuracy-unseen = Los puntos entre el último escaneo de una ronda y su final no se ven. Por eso las sumas de puntos se quedan cortas.
accuracy-estimates = Las estimaciones de tiempo y puntos incluyen lo que ningún escaneo vio. Cada una tiene un margen de error: en cuatro de cada cinco casos, el valor real queda dentro de él.
accuracy-closer = El orden de los jugadores se acerca más a la realidad que las sumas.
accuracy-honest = Los jugadores simulados son honestos, y cada uno tiene su propio nombre. Los reales comparten nombres y los cambian.
# $command is the command of a program; $about is the link `about-title`.
accuracy-measured = Cómo se mide, y otros tipos de rondas: { $command }. { $about }.
