# The texts of the website in Portuguese, in the format of Project Fluent. `$count` is a whole number; what other values are
# is said above a text. A translation has the same texts in its own file.

## Texts of several pages

player = Jogador
players-heading = Jogadores
points = Pontos
server = Servidor
servers-heading = Servidores
game = Jogo
games-heading = Jogos
map = Mapa
maps-heading = Mapas
country = País
address = Endereço
rank = Rank
week = Semana
score = Pontuação
sessions = Sessões
last-seen = Última vez
since = Desde
share = Parte
hours = Horas
mean-players = Média de jogadores
player-count = Jogadores
nobody = Ninguém.
none-yet = Ainda nenhum.
no-data-yet = Ainda sem dados.
now = agora
offline = offline
more = Mais
search = Pesquisar
find = Procurar
# $count of $most, such as 3 of 16 players.
of-most = { $count } de { $most }
# $number may have a decimal, such as 66.7.
percent = { $number }%
# The title of a page: $title is what it shows, $name is that of a server or a game.
title-and-name = { $title }: { $name }
show = Mostrar
tag = Tag
# Where a list of games, tags, players or maps is empty.
none = Nada encontrado.
winners-feed = Feed com os vencedores de cada semana

## Numbers and times

# $minutes has two digits where hours are before it.
minutes-only = { $minutes } min
hours-and-minutes = { $hours } h { $minutes } min
hours-only = { $hours } h
month-1 = jan
month-2 = fev
month-3 = mar
month-4 = abr
month-5 = mai
month-6 = jun
month-7 = jul
month-8 = ago
month-9 = set
month-10 = out
month-11 = nov
month-12 = dez
weekday-1 = seg
weekday-2 = ter
weekday-3 = qua
weekday-4 = qui
weekday-5 = sex
weekday-6 = sáb
weekday-7 = dom
# A day or a period of days: 23 Nov 2026; 23 to 29 Nov 2026; 23 Nov to 2 Dec 2026.
date = { $day } de { $month } de { $year }
# A day in a table or below a graph: 9 Nov.
short-date = { $day } { $month }
days-of-month = { $first } a { $day } de { $month } de { $year }
days-of-months = { $first_day } de { $first_month } a { $day } de { $month } de { $year }
# A week in a table: 23–29 Nov; 30 Nov – 6 Dec.
short-days-of-month = { $first }–{ $day } { $month }
short-days-of-months = { $first_day } { $first_month } – { $day } { $month }

## Rankings

points-for-winning = pontos por vitória
rating = rating
points-unit = somados no total
hours-and-minutes-unit = horas e minutos
time-ranking = Tempo
points-per-minute = pontos por minuto
clq1-rewards = Recompensa quem pontua rápido: a média dos dez melhores trechos de 12 minutos. Os que faltam contam como 0: uma pontuação completa exige 2 horas.
clq1-listed = Para entrar na tabela, é preciso jogar 12 minutos seguidos e pontuar.
clq2-rewards = Recompensa quem está no topo quando o round termina: quanto mais jogadores abaixo, mais pontos; somam-se os dez melhores rounds.
clq2-listed = Para entrar na tabela, é preciso estar entre os melhores no fim de um round com dois ou mais jogadores.
elo-rewards = Recompensa quem vence jogadores fortes: no fim do round, cada um tira rating de quem ficou abaixo, ou perde o seu.
elo-listed = Para entrar na tabela, é preciso terminar um round com outros jogadores.
points-rewards = Recompensa quem faz muitos pontos: todos contam.
time-rewards = Recompensa quem fica: todo o tempo conta, medido entre duas consultas.
seen-playing-listed = Para entrar na tabela, basta ser visto em jogo.

## The frame of all pages

# Where the operator has set no other title and description.
site-title = Estatísticas de jogos
site-description = Jogadores online, rankings e estatísticas de servidores de jogos.
frame-skip = Ir para o conteúdo
frame-site = Site
frame-about = Sobre
frame-search-label = Servidores, jogadores, mapas
frame-source = Todos os números são calculados pelo clqd a partir das respostas públicas dos servidores de jogo.
frame-utc = Horários em UTC.
frame-how = Como funciona e como ficar de fora
frame-links = Links do site
frame-languages = Idiomas
error-try-again = Tente de novo em { $seconds } s.
error-first-page = Ir para a página inicial
# A link with error-running-week follows.
error-window = Nada foi guardado deste período.
error-running-week = Para a semana em curso
# A search form follows.
error-player = Este site não conhece esse jogador. Procure o nome:
# A link to all servers follows, as after the next one.
error-server = Este site não conhece esse servidor.
error-server-removed = Este servidor foi removido: não aparece mais aqui.
error-not-found = Não há nada neste endereço. Ele pode estar errado, ou o que havia aqui não está mais guardado.
error-bad-request = Algo neste endereço não pode ser usado.
problem-bad-request = Pedido inválido
problem-unauthorized = É preciso um token
problem-forbidden = Não permitido
problem-not-found = Não encontrado
problem-removed = Removido
problem-method-not-allowed = Método não permitido
problem-conflict = Não é possível agora
problem-uri-too-long = URI grande demais
problem-too-many-requests = Pedidos demais
problem-internal = Erro interno
problem-answer-too-large = Resposta grande demais
problem-starting = Serviço em inicialização
problem-stopping = Serviço em encerramento
problem-busy = Serviço ocupado
script-add-favourite = ☆ Adicionar aos favoritos
# Of a button, for 2 seconds after a click on `script-copy`.
script-copied = Copiado
# Of a button: to the clipboard.
script-copy = Copiar
# Of a button that is pressed: this server or player is a favourite.
script-favourite = ★ Favorito
script-favourites = Favoritos
# After the time of a point of a graph, such as "2026-11-23 14:00: no data".
script-no-data = sem dados
# What is suggested while one types a search.
script-suggestions = Sugestões
# "Yours": in the time zone of the visitor.
script-zone = Horários no seu fuso; dias e semanas no fuso deste site.

## First page

home-silent = Nenhum servidor responde desde { $since }: a rede deste site parece estar fora do ar. Até voltar, os números estão incompletos.
home-busiest = Servidores mais movimentados
home-busiest-caption = Servidores com mais jogadores agora
home-all-servers = Todos os servidores
home-played = O que se joga
home-played-caption = Jogos com mais jogadores agora
home-no-server = Nenhum servidor online.
home-all-games = Todos os jogos
# $week is its days, such as 23–29 Nov; so in home-winners.
home-leaders = Líderes de { $week }
home-provisional = Provisório até a semana terminar.
# $ranking and $unit: CLQ1, points per minute. `clq1-rewards` follows.
home-unit = { $ranking }: { $unit }.
home-no-leaders = Ainda não há líderes, ou estão em preparação depois de um reinício.
home-changed = O que mudou
home-over-time = Jogadores ao longo do tempo
home-closed = Semanas encerradas
home-winners = Vencedores de { $week }
home-older-weeks = Semanas anteriores
home-no-closed = Ainda não há semanas encerradas.
home-players-online = Jogadores online
home-servers-online = Servidores online
home-known-servers = Servidores conhecidos
home-known-players = Jogadores conhecidos

## Page of a player

# A title. $name is the player's name without colours.
player-title = Jogador { $name }
player-description = Jogador { $name } de { $game }: sessões, semanas e melhores posições.
player-first-seen = Primeira vez
# Instead of a time, after Last seen.
player-playing-now = online agora
# $servers is links, with spaces between them.
player-playing-on = Online agora em { $servers }
# $game is the name of a game. A table follows: rankings and weeks.
player-rank = Posição em { $game }
player-this-week = Esta semana
# $names is the player's other names, with spaces between them.
player-merged = Unificado com: { $names }
# $games is links, with spaces between them.
player-same-name = O mesmo nome em outros jogos: { $games }
player-weeks = Semanas
# The last sentence explains the word that some figures have in their names.
player-weeks-kept = Todas as semanas que o clqd guarda. A semana em curso é provisória. Estimativa: pontos e tempo entre duas consultas, que nunca entram nos rankings.
player-best-positions = Melhores posições
# The label of a field for a name.
player-compare-with = Comparar com o jogador
# A button.
player-compare = Comparar
# $week is its days, such as 23–29 Nov. The position is shown below.
player-best-of-week = Melhor posição, { $week }
# A position in a ranking of a server, such as #3 CLQ1 on Warfare.
player-position = #{ $position } { $ranking } em { $server }
# The server on which the player was longest is shown below.
player-most-on = Mais tempo em
player-points-counted = Pontos de todas as semanas guardadas
player-points-estimated = Pontos (estimativa)
player-time-counted = Tempo de todas as semanas guardadas
# What one clicks to see estimated points and time.
player-estimates = Estimativas
player-time-estimated = Tempo (estimativa)
# Explains an estimate such as 1,204 ± 30.
player-estimated-meaning = Inclui o que nenhuma consulta viu. Em quatro de cada cinco casos, a diferença para o valor real não passa do segundo número.
# The title of a chart, and its unit: hours in each week.
player-hours-played = Horas jogadas
player-hours-unit = horas por semana
# The title of a chart. $ranking is such as CLQ1, $server is a name.
player-ranking-on = { $ranking } em { $server }
# What one clicks to see further charts.
player-more-rankings = Cada ranking por semana
player-weeks-caption = Pontuações e posições por semana e servidor
player-sure-rounds = Rounds confirmados
player-sure-rounds-meaning = Dos rounds que contam para CLQ2 e ELO, os que têm vencedor confirmado: uma consulta viu o fim
# No week.
player-no-weeks = Nenhuma guardada.
# A link to further weeks on servers.
player-more-weeks = E mais { $count }
# No position.
player-no-positions = Ainda nenhuma: as posições contam quando a semana é encerrada.
player-best-caption = As melhores posições em semanas encerradas
player-more-positions = Mais posições
# The head of a column with the names of rankings, such as CLQ1.
player-ranking = Ranking

## Comparison of two players

compare-two = Comparar dois jogadores
compare-search = Pesquise um deles: a página de cada jogador tem um formulário.
# Titles. $a, $b and $player are names of players.
compare-both-names = { $a } e { $b }
compare-one = Comparar { $player }
compare-no-player = Nenhum jogador tem o nome { $name }.
# Which one of the listed players.
compare-which = Qual deles?
compare-both = Os dois jogadores
# The head of the column with what is compared, for screen readers.
compare-what = O quê
compare-ahead = Quem ficou à frente
compare-no-week = Nenhum servidor teve os dois na mesma semana.
compare-weeks =
    { $count ->
        [one] Os dois têm { $count } semana no mesmo servidor.
       *[other] Os dois têm { $count } semanas no mesmo servidor.
    }
compare-counted = Uma semana conta para os rankings em que os dois têm posição.
compare-partial = Só as semanas mais recentes de cada um são comparadas.
compare-ahead-caption = Quantas vezes cada jogador ficou à frente
compare-by-week = Semana a semana
compare-by-week-caption = Pontuações, com a melhor posição em negrito
# The newest weeks.
compare-newest = São mostradas as { $count } mais recentes.

## Sessions of a player or on a server

# No session.
sessions-none = Nenhuma guardada.
sessions-measured = Da primeira à última consulta que viu o jogador: na verdade, ele ficou alguns minutos a mais.
sessions-newest = Sessões mais recentes
# Older sessions; the first is what one clicks to see them, the second is the title of their table.
sessions-older = Mais antigas
sessions-older-caption = Sessões mais antigas
# More sessions.
sessions-as-json = Mais sessões, em JSON
# Heads of columns: the time at which a session ended, and how long it was.
sessions-until = Até
sessions-for = Duração
# Instead of a time, of a session that only one scan has seen.
sessions-once = visto uma vez
sessions-last-map = Último mapa
# $players is a list of links with times.
sessions-companions = Joga com { $players }
sessions-days-title = Horários em que o jogador esteve nos servidores, por dia
sessions-days-caption = Quando o jogador jogou, UTC
# $largest is hours and minutes, such as 3:05.
sessions-hours-title = Horas da semana em que o jogador jogou. Máximo: { $largest } na mesma hora da semana
sessions-hours-caption = Horas da semana em que o jogador joga, UTC; cor mais forte: mais tempo
sessions-players =
    { $count ->
        [one] { $count } jogador.
       *[other] { $count } jogadores.
    }
sessions-longest = Jogadores com mais tempo aqui
sessions-more-players = Mais jogadores

## Availability of a server

availability-last-days =
    { $count ->
        [one] Último dia
       *[other] Últimos { $count } dias
    }
# $percent is a number, with one decimal at most.
availability-of-hours = { $percent }% das horas
availability-of-days = { $percent }% dos dias
# A day is shown below.
availability-known-since = Conhecido desde
availability-title = Horas de cada dia em que o servidor foi visto
# $date is such as 2026-11-23; $count is 0 to 24.
availability-day = { $date }: { $count } de 24 horas
availability-unwatched = { $date }: horas em que este site não viu nenhum servidor: { $hours }
availability-caption = Horas de cada dia em que uma consulta teve resposta, UTC. Um servidor consultado uma vez por dia só é visto em 1 hora de cada dia. Mais claras e não contadas: horas em que este site não viu nenhum servidor.

## Graphs

# In this and the next three texts $title is such as `server-over-32-days`, $unit such as `server-mean-of-an-hour`.
chart-title = { $title }, { $unit }
# $largest is a value, which may have a decimal.
chart-title-largest = { $title }, { $unit }. Máximo: { $largest }
chart-title-newest = { $title }, { $unit }. Mais recente: { $newest }. Máximo: { $largest }
# Below a graph; its title is above it.
chart-caption = { $unit }{ $zone }.
# Above a graph: now 12 · peak 35 · mean 20; of ranks, best instead of peak. $value may have a decimal.
chart-now = agora { $value }
chart-peak = máximo { $value }
chart-best = melhor { $value }
chart-mean = média { $value }
chart-running = O trecho tracejado ainda não terminou.
# A link to the values of the graph.
chart-table = Ver em tabela

## Players online over time

online-over-25-hours = Jogadores online nas últimas 25 horas
online-over-32-days = Jogadores online nos últimos 32 dias
online-over-a-year = Jogadores online no último ano
online-over-all-weeks = Jogadores online, todas as semanas
# What a value of the graph is: each server has a mean for each time of this length, and these means are added.
online-means-of-10-minutes = soma das médias dos servidores a cada 10 minutos
online-means-of-an-hour = soma das médias dos servidores por hora
online-means-of-a-day = soma das médias dos servidores por dia
online-means-of-a-week = soma das médias dos servidores por semana
online-no-data = Ainda não há dados: o primeiro intervalo de dez minutos não terminou.
# $unit is such as `online-means-of-an-hour`.
online-caption = Mais recentes primeiro{ $zone }. Jogadores: { $unit }. Servidores: os que foram vistos.
# The head of a column: the time at which a slot of a graph begins.
online-from = Início

## Page of a server

# $address is host:port.
server-description-of-game = Servidor de { $game } em { $address }: jogadores agora e ao longo do tempo, rankings por semana, mapas.
server-description = Servidor em { $address }: jogadores agora e ao longo do tempo, rankings por semana, mapas.
# Describes a banner.
server-image = Servidor de jogo { $url }
server-excluded = Este servidor está fora dos rankings.
# $time: when the server was last seen.
server-offline-since = offline desde { $time }
server-no-answer = O servidor não responde.
# The heading of a list.
server-players-now = Jogadores agora
server-players-of-day = Jogadores das últimas 24 horas
server-availability = Disponibilidade
server-busy-hours = Horas mais movimentadas
server-maps = Mapas desta semana
server-best = Melhores de todos os tempos
server-scanning = Como é consultado
server-rank = Rank na última semana encerrada
server-join = Entrar no jogo
# $tags is a list of links.
server-tags = Tags: { $tags }
# Such as 3 of 16 on the map q3dm17; $count and $most are numbers of players.
server-now = { $count } de { $most } em { $map }
server-players-caption = Jogadores da última consulta
server-ping = Ping, ms
# After the name of a player in a list, in brackets.
server-spectator = espectador
server-bot = bot ou fora do ranking
server-over-25-hours = Jogadores nas últimas 25 horas
server-over-32-days = Jogadores nos últimos 32 dias
server-over-a-year = Jogadores no último ano
server-over-all-weeks = Jogadores, todas as semanas
server-ranks = Rank do servidor nas últimas 55 semanas
# What a value of the graph is: the mean number of players in a time of this length.
server-mean-of-10-minutes = média a cada 10 minutos
server-mean-of-an-hour = média por hora
server-mean-of-a-day = média por dia
server-mean-of-a-week = média por semana
# What a value of the graph `server-ranks` is.
server-ranks-unit = 1 é o primeiro; lacunas: sem rank
server-no-slot = O primeiro intervalo de dez minutos ainda não terminou.
# $most may have a decimal.
server-busy-title = Média de jogadores em cada hora da semana. Máximo: { $most }
server-busy-caption = Média de jogadores em cada hora da semana nos últimos 32 dias, UTC; cor mais forte: mais jogadores
server-settings = Configurações do servidor
server-settings-caption = O que o servidor publica, com os nomes usados pelo jogo
# The head of a column.
server-setting = Configuração
server-rotation = Rotação de mapas observada
# A list of maps with times follows.
server-rotation-meaning = O mapa mais recente vem primeiro. Consultas a cada dois minutos podem não ver algum mapa.
# $map is a link: the map that has followed the present one each time.
server-next-map = Próximo, como todas as vezes até agora: { $map }
server-maps-caption = Mapas jogados desde o início da semana
server-best-meaning = Os jogadores com as melhores posições em semanas encerradas, mesmo nas que já não são guardadas.
# $ranking is such as CLQ1.
server-best-caption = Melhores posições em { $ranking }
# The head of a column; the newest week with it is in the next one.
server-best-positions = Melhor posição
# Such as 1 in 2026-W47.
server-position-in-week = { $position } em { $week }
# $unit is such as `server-mean-of-an-hour`.
server-series-caption = { $unit }, mais recentes primeiro{ $zone }
server-value = Valor
server-queried = Endereço consultado
server-class = Classe
server-missed = Consultas seguidas sem resposta
server-coverage = Parte desta semana em que foi visto
server-authentication = Autenticação das respostas
server-no-reply = sem resposta desde o início do clqd
# A list follows.
server-screened = Partes das respostas não foram usadas:
# $reason is a word of a program, $time when it was last the reason.
server-screened-last = { $reason }, última vez: { $time }
server-classes = Classe 1: consulta a cada 2 minutos; 2: a cada 10 minutos; 3: a cada hora; 4: uma vez por dia; 5: uma vez por semana; 6 e 7: não respondem.

## Banners of a server or a player

banners-heading = Frame e banners
banners-frame = Um frame para sites, que mostra o servidor ou o jogador neste momento.
banners-frame-html = Frame, HTML
banners-codes = Códigos para fóruns e sites. A maioria dos fóruns aceita BBCode; alguns só precisam do endereço da imagem, que termina em .png.
# $size is `banners-wide`, `banners-box`, `banners-small` or `banners-card`.
banners-size = { $size }, { $width } x { $height } px
banners-html = { $size }, HTML
banners-bbcode = { $size }, BBCode
banners-wide = Largo
banners-box = Caixa
banners-small = Pequeno
banners-card = Cartão
banner-players = { $players }/{ $slots } jogadores
banner-rank = rank { $rank }
banner-at = às { $time } UTC
banner-seen = visto em { $time } UTC
banner-never = nunca visto
banner-points = { $points } pontos
banner-not-seen = não visto esta semana
banner-origin = { $game } em { $server }
banner-graph = jogadores, 25 horas

## Frames of other sites

embed-players = { $count } de { $most } jogadores
# $map is a link.
embed-players-on-map = { $count } de { $most } jogadores em { $map }
# The next two are of a player.
embed-playing-now = online agora
embed-last-seen = última vez: { $day }
# $server is a link.
embed-playing-on = { $game }, online agora em { $server }
embed-game-last-seen = { $game }, última vez: { $time }
embed-never-seen = { $game }, nunca visto

## Boards

# $window is a week, a day or another period: 2026-W47, or 16 to 22 Nov 2026 (2026-W47).
boards-rankings-of = Rankings de { $window }
# $ranking is the name of a ranking, such as ELO.
boards-ranking-in = { $ranking } em { $window }
# For those who hear the page. $ranking is the name of a ranking, $scope that of a server, a game or a tag.
boards-table-of = { $ranking } de { $scope }
boards-all-rankings = Todos os rankings
# A link from the best players to all.
boards-all-players =
    { $count ->
        [one] { $count } jogador
       *[other] Todos os { $count } jogadores
    }
boards-find-player = Procurar um jogador nesta tabela
# $name is what the visitor has entered.
boards-not-found = Não encontrado: nenhum jogador desta tabela tem as palavras { $name } no nome.
# Links to the first page of a board, to better positions, to further positions, and to the last page.
boards-pages = Páginas da tabela
boards-first = Início
boards-better = Acima
boards-further = Abaixo
boards-last = Fim
# $first and $last are positions: 51 to 100 of 1,204 players.
boards-shown =
    { $count ->
        [one] { $first } a { $last } de { $count } jogador
       *[other] { $first } a { $last } de { $count } jogadores
    }
# The state of a week or another period.
boards-closed = Encerrado: resultado final.
boards-running = Em curso: resultado provisório.
# Follows boards-running or home-provisional: of the time of the week. $share is such as 66.7 %.
boards-coverage = Os servidores foram vistos em { $share } do tempo.
# The period that is shown.
boards-window = Período
# Explains the head # of a column.
boards-position = posição
# The head of a column: when a player reached the score.
boards-reached = Alcançado
# The head of the column with the next three: how many positions a player has moved since the week before.
boards-change = Variação
boards-new = novo
boards-up = sobe { $count }
boards-down = desce { $count }
boards-no-player = Ainda sem jogadores.
# What has changed since the week before. $player and $game are links; $position is mover-position, $up is mover-up-from.
mover-up = { $player } { $up } na semana anterior para o { $position } em { $game }.
mover-new = { $player } entrou em { $position } em { $game }, sem posição na semana anterior.
# In mover-up and mover-new, bold: number 3.
mover-position = { $position }º lugar
# In mover-up, coloured; $before is the position in the week before.
mover-up-from = subiu do { $before }º
# Follows mover-up or mover-new: when the player reached the score.
mover-score = Pontuação de { $time }.

## Games and tags

groups-games-caption = Jogos com servidores online
groups-tags = Tags
groups-tags-caption = Tags de servidores online
groups-most-played = Os { $count } com mais jogadores, de { $most }.
# The heading of the page of a game, and of that of a tag.
groups-game = Jogo { $name }
groups-tag = Tag { $name }
groups-peak = Máximo de jogadores em 25 horas
groups-servers-of-game = Todos os servidores deste jogo
groups-servers-of-tag = Todos os servidores com esta tag
# For search engines. $name is that of a game or a tag.
groups-description = { $name }: servidores online, jogadores ao longo do tempo e rankings por semana.

## Maps

map-none-yet = Ainda nada: estes números podem ter até dez minutos de atraso.
# $count: at most 200 maps.
map-list-caption = Os mapas mais jogados em todas as semanas guardadas, em todos os servidores; no máximo { $count }
# The head of a column with the number of weeks.
map-week-count = Semanas
map-share = Parte do total
map-title = Mapa { $name }
map-players-now = Jogadores agora
map-servers-now = Servidores com este mapa agora
map-servers-caption = Servidores com este mapa, por número de jogadores
map-hours-title = Horas jogadas por todos os jogadores
# The heading of a table with a row for each week.
map-weeks = Semanas
map-weeks-caption = Quanto o mapa foi jogado em cada semana, em todos os servidores. A semana em curso é provisória.
map-player-hours = Horas de todos
# For search engines.
map-description = Mapa { $name }: quanto foi jogado por semana e que servidores o jogam agora.

## Tables of servers

server-table-25-hours = 25 horas
# The head of the column that says when a server was seen: now, a time, or never.
server-table-seen = Visto
server-table-never = nunca
# Of a server.
server-table-not-ranked = sem rank
server-table-none = Nenhum servidor.
# Of a server: as many players as it can have.
server-table-full = cheio
server-table-not-believed = O servidor anuncia mais jogadores do que pode ter. Este número não é usado.

## List of servers

servers-further = Mais servidores
servers-caption-added = Todos os servidores, na ordem em que foram adicionados
servers-caption-players = Servidores online, por número de jogadores
servers-caption-rank = Servidores com rank, os melhores da última semana encerrada primeiro
servers-caption-name = Servidores que respondem, por nome
# The filters. servers-all is the choice of all games, tags, countries or states.
servers-contains = Nome, endereço ou mapa contém
servers-all = qualquer
servers-state = Status
servers-online = online
# How the list is ordered: by the time when servers were added, by players, by rank, by name.
servers-order = Ordem
servers-order-added = adição
servers-order-players = jogadores
servers-order-rank = rank
servers-order-name = nome

## Search

# A heading.
search-title = Pesquisa
search-enter = Escreva o nome de um servidor, jogador, jogo ou mapa.
# $text is what the visitor has entered.
search-for = Pesquisa por { $text }
# After the name of a player, and a comma or a space.
search-last-seen = última vez: { $time }
search-more-players = Há mais. Um texto mais longo encontra menos.
search-players-caption = Jogadores cujo nome corresponde ao texto
# The head of a column with positions. $ranking is CLQ1.
search-rank = { $ranking } nesta semana
# $text is what the visitor has entered.
search-nothing = Nada encontrado para { $text }: nenhum nome de jogador, servidor, jogo ou mapa contém este texto, nem o endereço de um servidor. Maiúsculas e minúsculas são iguais.
search-servers-caption = Servidores com o texto no nome ou no endereço
search-more-servers = Pode haver mais. Um texto mais longo encontra menos.
search-games-and-maps = Jogos e mapas
# $name is that of a game, which is said after it; so in search-map.
search-game = { $name }, jogo
search-map = { $name }, mapa
# After the name of a server: 3/16 on q3dm17.
search-players-on = { $players } em { $map }

## Feeds

# $name is that of a server or a game.
feeds-title = { $name }: vencedores da semana
# $ranking is the name of a ranking; a list of players follows.
feeds-ranking = { $ranking }:

## How it works

about-title = Como funciona
about-scans = Cada servidor de jogo responde a uma pequena consulta: o mapa, os jogadores e os pontos deles. Este site consulta cada servidor no ritmo que ele merece, de uma vez a cada dois minutos a uma vez por semana, e compara cada resposta com a anterior. Só com isso, sabe quem entrou, quem saiu, quem pontuou e quando um round terminou. Os servidores não precisam de plugin.
about-rankings = Rankings
about-windows = Cada ranking é calculado por semana, para cada servidor, jogo e tag, e também nos outros períodos configurados neste site.
about-clq1 = CLQ1, pontos por minuto
about-clq1-meaning = A velocidade com que um jogador faz pontos. O tempo de jogo é dividido em trechos de 12 minutos; a pontuação é a média dos dez melhores trechos da semana. Os que faltam contam como 0: uma pontuação completa exige 2 horas.
about-clq2 = CLQ2, pontos por vitória
about-clq2-meaning = Chegar ao topo da lista no fim dos rounds: quanto mais jogadores abaixo, mais pontos.
about-elo = ELO, rating
about-elo-meaning = Cada round é um duelo de cada jogador contra todos os outros. Quem fica em melhor posição vence e tira rating do outro.
about-points-meaning = Todos os pontos feitos na semana.
about-time-meaning = Tempo no servidor.
about-example = Um exemplo
# Visor is the name of a player; Points and Time are the rankings `points` and `time-ranking`.
about-example-of-scans = Uma consulta às 20:00 mostra Visor com 10 pontos; a seguinte, às 20:02, com 14. Visor jogou 120 segundos e fez 4 pontos: somam-se 4 a Pontos e 2 minutos a Tempo, e nesse trecho a velocidade foi 4 / 2 = 2 pontos por minuto. Se a consulta das 20:04 mostra 2 pontos e um mapa novo, um round terminou: a lista das 20:02, a última vista, é a que vale para CLQ2 e ELO.
# $accuracy is the link `about-accuracy`.
about-measured = A distância entre os rankings e o que aconteceu é medida: { $accuracy }.
about-accuracy = precisão
about-unknown = O que não dá para saber
about-unseen = O que acontece entre duas consultas: uma passagem de um minuto pode escapar, e os pontos depois da última consulta de um round não são vistos. As estimativas disso aparecem à parte e nunca entram nos rankings.
about-same-names = Quem é quem: os jogadores são identificados pelo nome. Duas pessoas com o mesmo nome no mesmo jogo são um só jogador.
about-untrue = Se um servidor diz a verdade. Respostas implausíveis não são usadas; a página do servidor explica o motivo.
about-figures = Números
about-players = Jogadores de um servidor: os da última resposta. Os gráficos mostram médias; uma lacuna significa que não houve resposta.
about-provisional = A semana em curso é provisória. O resultado é final quando ela é encerrada.
about-opting-out = Como ficar de fora
about-how-to-opt-out = Donos de servidores: se o servidor não deve ser consultado ou listado, ou é consultado vezes demais, basta escrever ao administrador deste site. Jogadores: um nome e todos os seus dados são apagados a pedido, e o nome nunca mais é guardado.
about-contact = Endereço do administrador: { $contact }
about-no-contact = O administrador não indicou um endereço.

## Accuracy

accuracy-title = Precisão
accuracy-heading = Quão perto os rankings ficam do que aconteceu
accuracy-simulation = Ninguém conta a este site o que aconteceu nos servidores. Ele só vê listas de jogadores, mais ou menos a cada dois minutos. Quanto isso deixa escapar pode ser medido onde tudo é conhecido, como nesta simulação: uma semana de 48 servidores e cerca de 45.000 rounds de 5 a 40 minutos, com jogadores que entram e saem quando querem. O programa deste site consulta esses servidores, e os rankings dele são comparados com os verdadeiros.
accuracy-rounds = Rounds e somas
# Heads of columns; they are explained by the texts `accuracy-...-meaning`.
accuracy-scans = consultas
accuracy-time = tempo
accuracy-points = pontos
accuracy-found = encontrados
accuracy-winner = vencedor
accuracy-top-3 = top 3
accuracy-sure = confirmados
accuracy-right = certos
# $number has decimals, such as +1.3.
accuracy-order = Ordem dos jogadores
accuracy-scans-meaning = Consultas: de cada servidor em dois minutos. * Em horários fixos; todas as outras são feitas quando mais revelam, como pouco antes do fim de um round. 1,13 é o que o programa faz se o administrador não definir outra coisa.
# The heads of columns that the next text explains.
accuracy-time-points = tempo, pontos
accuracy-time-points-meaning = A soma de todos os jogadores, comparada com o que realmente jogaram e pontuaram.
accuracy-found-winner-top-3 = encontrados, vencedor, top 3
accuracy-found-winner-top-3-meaning = Quantos rounds foram encontrados, quantos com o vencedor certo e quantos com os três primeiros certos. Um round não é encontrado se foi curto demais ou se ninguém ficou.
accuracy-sure-right = confirmados, certos
accuracy-sure-right-meaning = Quantos dos rounds encontrados são marcados como confirmados, porque uma consulta viu o fim, e quantos desses têm o vencedor certo.
accuracy-order-of-players = ordem dos jogadores
accuracy-order-of-players-meaning = Até que ponto a ordem dos jogadores de um servidor coincide com a verdadeira: 1 é a mesma ordem, 0 é acaso.
accuracy-known = O que um ranking pode saber e o que não pode
accuracy-who-played = Quem jogou, e por quanto tempo, é conhecido com a precisão do intervalo entre duas consultas.
accuracy-unseen = Os pontos entre a última consulta de um round e o fim dele não são vistos. Por isso, as somas de pontos ficam abaixo do real.
accuracy-estimates = As estimativas de tempo e pontos incluem o que nenhuma consulta viu. Cada uma tem um erro: em quatro de cada cinco casos, a diferença para o valor real não passa dele.
accuracy-closer = A ordem dos jogadores fica mais perto da realidade do que as somas.
accuracy-honest = Os jogadores simulados são honestos e cada um tem o seu próprio nome. Os reais repetem nomes e trocam de nome.
# $command is the command of a program; $about is the link `about-title`.
accuracy-measured = Como isto é medido, e outros tipos de rounds: { $command }. { $about }.
