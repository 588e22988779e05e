# The texts of the website in French, in the format of Project Fluent. `$count` is a whole number; what other values are
# is said above a text. A translation has the same texts in its own file.

## Texts of several pages

player = Joueur
players-heading = Joueurs
points = Points
server = Serveur
servers-heading = Serveurs
game = Jeu
games-heading = Jeux
map = Map
maps-heading = Maps
country = Pays
address = Adresse
rank = Rang
week = Semaine
score = Score
sessions = Sessions
last-seen = Dernière activité
since = Depuis
share = Part
hours = Heures
mean-players = Joueurs moy.
player-count = Joueurs
nobody = Personne.
none-yet = Rien pour l’instant.
no-data-yet = Pas encore de données.
now = maintenant
offline = hors ligne
more = Plus
search = Rechercher
find = Trouver
# $count of $most, such as 3 of 16 players.
of-most = { $count }/{ $most }
# $number may have a decimal, such as 66.7.
percent = { $number } %
# The title of a page: $title is what it shows, $name is that of a server or a game.
title-and-name = { $title } : { $name }
show = Afficher
tag = Tag
# Where a list of games, tags, players or maps is empty.
none = Aucun.
winners-feed = Flux des vainqueurs de chaque semaine

## Numbers and times

# $minutes has two digits where hours are before it.
minutes-only = { $minutes } min
hours-and-minutes = { $hours } h { $minutes } min
hours-only = { $hours } h
month-1 = janv.
month-2 = févr.
month-3 = mars
month-4 = avr.
month-5 = mai
month-6 = juin
month-7 = juil.
month-8 = août
month-9 = sept.
month-10 = oct.
month-11 = nov.
month-12 = déc.
weekday-1 = Lun
weekday-2 = Mar
weekday-3 = Mer
weekday-4 = Jeu
weekday-5 = Ven
weekday-6 = Sam
weekday-7 = Dim
# A day or a period of days: 23 Nov 2026; 23 to 29 Nov 2026; 23 Nov to 2 Dec 2026.
date =
    { $day ->
        [one] 1er
       *[other] { $day }
    } { $month } { $year }
# A day in a table or below a graph: 9 Nov.
short-date = { $day } { $month }
days-of-month =
    { $first ->
        [one] 1er
       *[other] { $first }
    } au { $day } { $month } { $year }
days-of-months =
    { $first_day ->
        [one] 1er
       *[other] { $first_day }
    } { $first_month } au { $day ->
        [one] 1er
       *[other] { $day }
    } { $month } { $year }
# A week in a table: 23–29 Nov; 30 Nov – 6 Dec.
short-days-of-month = { $first }–{ $day } { $month }
short-days-of-months = { $first_day } { $first_month } – { $day } { $month }

## Rankings

points-for-winning = points de victoire
rating = cote
points-unit = marqués au total
hours-and-minutes-unit = heures et minutes
time-ranking = Temps
points-per-minute = points par minute
clq1-rewards = Récompense ceux qui marquent vite : la moyenne des dix meilleures tranches de 12 minutes. Celles qui manquent comptent pour 0 : un score complet demande 2 heures.
clq1-listed = Pour y figurer, il faut jouer 12 minutes d’affilée et marquer.
clq2-rewards = Récompense les premières places en fin de manche : plus il y a de joueurs derrière, plus ça rapporte de points ; les dix meilleures manches s’additionnent.
clq2-listed = Pour y figurer, il faut finir parmi les meilleurs d’une manche à deux joueurs ou plus.
elo-rewards = Récompense les victoires contre des joueurs forts : à la fin d’une manche, chacun prend de l’ELO à ceux classés derrière, ou en perd.
elo-listed = Pour y figurer, il faut jouer une manche avec d’autres jusqu’au bout.
points-rewards = Récompense le nombre de points marqués : tous comptent.
time-rewards = Récompense la présence : tout le temps compte, mesuré entre deux scans.
seen-playing-listed = Pour y figurer, il faut être vu en jeu.

## The frame of all pages

# Where the operator has set no other title and description.
site-title = Statistiques de jeu
site-description = Joueurs en ligne, classements et statistiques de serveurs de jeu.
frame-skip = Aller au contenu
frame-site = Site
frame-about = À propos
frame-search-label = Serveurs, joueurs, maps
frame-source = Tous les chiffres sont calculés par clqd à partir des réponses publiques des serveurs de jeu.
frame-utc = Les heures sont en UTC.
frame-how = Comment ça marche et comment ne plus apparaître
frame-links = Liens du site
frame-languages = Langues
error-try-again = Réessayer dans { $seconds } s.
error-first-page = Page d’accueil
# A link with error-running-week follows.
error-window = Rien n’est conservé de cette période.
error-running-week = Vers la semaine en cours
# A search form follows.
error-player = Ce site ne connaît pas ce joueur. Cherchez son pseudo :
# A link to all servers follows, as after the next one.
error-server = Ce site ne connaît pas ce serveur.
error-server-removed = Ce serveur a été retiré : il n’est plus listé ici.
error-not-found = Il n’y a rien à cette adresse. Elle est peut-être fausse, ou ce qui était ici n’est plus conservé.
error-bad-request = Quelque chose dans cette adresse n’est pas utilisable.
problem-bad-request = Requête invalide
problem-unauthorized = Un token est requis
problem-forbidden = Accès refusé
problem-not-found = Introuvable
problem-removed = Supprimé
problem-method-not-allowed = Méthode non autorisée
problem-conflict = Impossible pour le moment
problem-uri-too-long = URI trop longue
problem-too-many-requests = Trop de requêtes
problem-internal = Erreur interne
problem-answer-too-large = La réponse est trop volumineuse
problem-starting = Le service démarre
problem-stopping = Le service s’arrête
problem-busy = Le service est occupé
script-add-favourite = ☆ Ajouter aux favoris
# Of a button, for 2 seconds after a click on `script-copy`.
script-copied = Copié
# Of a button: to the clipboard.
script-copy = Copier
# Of a button that is pressed: this server or player is a favourite.
script-favourite = ★ Favori
script-favourites = Mes favoris
# After the time of a point of a graph, such as "2026-11-23 14:00: no data".
script-no-data = pas de données
# What is suggested while one types a search.
script-suggestions = Suggestions
# "Yours": in the time zone of the visitor.
script-zone = Heures locales ; jours et semaines dans le fuseau de ce site.

## First page

home-silent = Aucun serveur ne répond depuis { $since } : le réseau de ce site semble en panne. D’ici son retour, les chiffres sont incomplets.
home-busiest = Serveurs les plus peuplés
home-busiest-caption = Serveurs avec le plus de joueurs en ce moment
home-all-servers = Tous les serveurs
home-played = Jeux du moment
home-played-caption = Jeux avec le plus de joueurs en ce moment
home-no-server = Aucun serveur en ligne.
home-all-games = Tous les jeux
# $week is its days, such as 23–29 Nov; so in home-winners.
home-leaders = Leaders du { $week }
home-provisional = Provisoire jusqu’à la fin de la semaine.
# $ranking and $unit: CLQ1, points per minute. `clq1-rewards` follows.
home-unit = { $ranking } : { $unit }.
home-no-leaders = Aucun pour l’instant, ou encore en préparation après un démarrage.
home-changed = Ce qui a changé
home-over-time = Joueurs au fil du temps
home-closed = Semaines clôturées
home-winners = Vainqueurs du { $week }
home-older-weeks = Semaines précédentes
home-no-closed = Aucune semaine clôturée pour l’instant.
home-players-online = Joueurs en ligne
home-servers-online = Serveurs en ligne
home-known-servers = Serveurs connus
home-known-players = Joueurs connus

## Page of a player

# A title. $name is the player's name without colours.
player-title = Joueur { $name }
player-description = Joueur { $name } sur { $game } : sessions, semaines et meilleures positions.
player-first-seen = Première activité
# Instead of a time, after Last seen.
player-playing-now = en jeu maintenant
# $servers is links, with spaces between them.
player-playing-on = Joue en ce moment sur { $servers }
# $game is the name of a game. A table follows: rankings and weeks.
player-rank = Rang dans { $game }
player-this-week = Cette semaine
# $names is the player's other names, with spaces between them.
player-merged = Pseudos fusionnés : { $names }
# $games is links, with spaces between them.
player-same-name = Même pseudo dans d’autres jeux : { $games }
player-weeks = Semaines
# The last sentence explains the word that some figures have in their names.
player-weeks-kept = Toutes les semaines que clqd conserve. La semaine en cours est provisoire. Estimé : points et temps entre deux scans, jamais classés.
player-best-positions = Meilleures positions
# The label of a field for a name.
player-compare-with = Comparer avec le joueur
# A button.
player-compare = Comparer
# $week is its days, such as 23–29 Nov. The position is shown below.
player-best-of-week = Meilleure position, { $week }
# A position in a ranking of a server, such as #3 CLQ1 on Warfare.
player-position = #{ $position } { $ranking } sur { $server }
# The server on which the player was longest is shown below.
player-most-on = Surtout sur
player-points-counted = Points de toutes les semaines conservées
player-points-estimated = Points estimés
player-time-counted = Temps de toutes les semaines conservées
# What one clicks to see estimated points and time.
player-estimates = Estimations
player-time-estimated = Temps estimé
# Explains an estimate such as 1,204 ± 30.
player-estimated-meaning = Inclut ce qu’aucun scan n’a vu. Dans quatre cas sur cinq, l’écart avec la vraie valeur ne dépasse pas le second nombre.
# The title of a chart, and its unit: hours in each week.
player-hours-played = Heures de jeu
player-hours-unit = heures par semaine
# The title of a chart. $ranking is such as CLQ1, $server is a name.
player-ranking-on = { $ranking } sur { $server }
# What one clicks to see further charts.
player-more-rankings = Chaque classement par semaine
player-weeks-caption = Scores et positions par semaine et par serveur
player-sure-rounds = Manches sûres
player-sure-rounds-meaning = Parmi les manches qui comptent pour CLQ2 et ELO, celles dont le vainqueur est sûr : un scan a vu leur fin
# No week.
player-no-weeks = Aucune n’est conservée.
# A link to further weeks on servers.
player-more-weeks =
    { $count ->
        [one] Et { $count } autre
       *[other] Et { $count } autres
    }
# No position.
player-no-positions = Aucune pour l’instant : les positions comptent une fois la semaine clôturée.
player-best-caption = Les meilleures positions des semaines clôturées
player-more-positions = Autres positions
# The head of a column with the names of rankings, such as CLQ1.
player-ranking = Classement

## Comparison of two players

compare-two = Comparer deux joueurs
compare-search = Il suffit de chercher l’un des deux : la page de chaque joueur a un formulaire.
# Titles. $a, $b and $player are names of players.
compare-both-names = { $a } et { $b }
compare-one = Comparer { $player }
compare-no-player = Aucun joueur n’a le pseudo { $name }.
# Which one of the listed players.
compare-which = Lequel ?
compare-both = Les deux joueurs
# The head of the column with what is compared, for screen readers.
compare-what = Info
compare-ahead = Qui était devant
compare-no-week = Aucune semaine en commun sur un même serveur.
compare-weeks =
    { $count ->
        [one] { $count } semaine en commun sur le même serveur.
       *[other] { $count } semaines en commun sur le même serveur.
    }
compare-counted = Une semaine compte pour un classement si les deux y ont une position.
compare-partial = Seules les semaines les plus récentes de chacun sont comparées.
compare-ahead-caption = Combien de fois chaque joueur était devant
compare-by-week = Semaine par semaine
compare-by-week-caption = Scores, la meilleure position en gras
# The newest weeks.
compare-newest =
    { $count ->
        [one] Seule la plus récente est affichée.
       *[other] Les { $count } plus récentes sont affichées.
    }

## Sessions of a player or on a server

# No session.
sessions-none = Aucune n’est conservée.
sessions-measured = Du premier au dernier scan qui a vu le joueur : sa présence a duré quelques minutes de plus.
sessions-newest = Dernières sessions
# Older sessions; the first is what one clicks to see them, the second is the title of their table.
sessions-older = Plus anciennes
sessions-older-caption = Sessions plus anciennes
# More sessions.
sessions-as-json = La suite en JSON
# Heads of columns: the time at which a session ended, and how long it was.
sessions-until = Fin
sessions-for = Durée
# Instead of a time, of a session that only one scan has seen.
sessions-once = vu une fois
sessions-last-map = Dernière map
# $players is a list of links with times.
sessions-companions = Joue avec { $players }
sessions-days-title = Moments où le joueur était sur un serveur, par jour
sessions-days-caption = Quand le joueur a joué, UTC
# $largest is hours and minutes, such as 3:05.
sessions-hours-title = Heures de la semaine où le joueur a joué. Maximum : { $largest } sur une heure de la semaine
sessions-hours-caption = Heures de la semaine où le joueur joue, UTC ; couleur plus vive : plus longtemps
sessions-players =
    { $count ->
        [one] { $count } joueur.
       *[other] { $count } joueurs.
    }
sessions-longest = Joueurs restés le plus longtemps
sessions-more-players = Autres joueurs

## Availability of a server

availability-last-days =
    { $count ->
        [one] Dernier jour
       *[other] { $count } derniers jours
    }
# $percent is a number, with one decimal at most.
availability-of-hours = { $percent } % des heures
availability-of-days = { $percent } % des jours
# A day is shown below.
availability-known-since = Connu depuis
availability-title = Heures de chaque jour où le serveur a été vu
# $date is such as 2026-11-23; $count is 0 to 24.
availability-day =
    { $count ->
        [one] { $date } : { $count } heure sur 24
       *[other] { $date } : { $count } heures sur 24
    }
availability-unwatched = { $date } : heures où ce site n’a vu aucun serveur : { $hours }
availability-caption = Heures de chaque jour où un scan a reçu une réponse, UTC. Un serveur interrogé une fois par jour est vu une heure par jour. En plus clair, et non comptées : les heures où ce site lui-même n’a vu aucun serveur.

## Graphs

# In this and the next three texts $title is such as `server-over-32-days`, $unit such as `server-mean-of-an-hour`.
chart-title = { $title }, { $unit }
# $largest is a value, which may have a decimal.
chart-title-largest = { $title }, { $unit }. Maximum : { $largest }
chart-title-newest = { $title }, { $unit }. Dernière valeur : { $newest }. Maximum : { $largest }
# Below a graph; its title is above it.
chart-caption = { $unit }{ $zone }.
# Above a graph: now 12 · peak 35 · mean 20; of ranks, best instead of peak. $value may have a decimal.
chart-now = maintenant { $value }
chart-peak = maximum { $value }
chart-best = meilleur { $value }
chart-mean = moyenne { $value }
chart-running = La partie en pointillés est encore en cours.
# A link to the values of the graph.
chart-table = En tableau

## Players online over time

online-over-25-hours = Joueurs en ligne sur 25 heures
online-over-32-days = Joueurs en ligne sur 32 jours
online-over-a-year = Joueurs en ligne sur un an
online-over-all-weeks = Joueurs en ligne sur toutes les semaines
# What a value of the graph is: each server has a mean for each time of this length, and these means are added.
online-means-of-10-minutes = somme des moyennes des serveurs sur 10 minutes
online-means-of-an-hour = somme des moyennes des serveurs sur une heure
online-means-of-a-day = somme des moyennes des serveurs sur un jour
online-means-of-a-week = somme des moyennes des serveurs sur une semaine
online-no-data = Pas encore de données : les dix premières minutes ne sont pas écoulées.
# $unit is such as `online-means-of-an-hour`.
online-caption = Du plus récent au plus ancien{ $zone }. Joueurs : { $unit }. Serveurs : ceux qui ont été vus.
# The head of a column: the time at which a slot of a graph begins.
online-from = Début

## Page of a server

# $address is host:port.
server-description-of-game = Serveur { $game } à l’adresse { $address } : joueurs en ce moment et au fil du temps, classements par semaine, maps.
server-description = Serveur à l’adresse { $address } : joueurs en ce moment et au fil du temps, classements par semaine, maps.
# Describes a banner.
server-image = Serveur de jeu { $url }
server-excluded = Ce serveur est exclu des classements.
# $time: when the server was last seen.
server-offline-since = hors ligne depuis le { $time }
server-no-answer = Le serveur ne répond pas.
# The heading of a list.
server-players-now = Joueurs en ce moment
server-players-of-day = Joueurs des dernières 24 heures
server-availability = Disponibilité
server-busy-hours = Heures d’affluence
server-maps = Maps de cette semaine
server-best = Meilleurs de tous les temps
server-scanning = Comment il est scanné
server-rank = Rang de la dernière semaine clôturée
server-join = Rejoindre la partie
# $tags is a list of links.
server-tags = Tags : { $tags }
# Such as 3 of 16 on the map q3dm17; $count and $most are numbers of players.
server-now = { $count }/{ $most } sur { $map }
server-players-caption = Joueurs du dernier scan
server-ping = Ping, ms
# After the name of a player in a list, in brackets.
server-spectator = spectateur
server-bot = bot ou non classé
server-over-25-hours = Joueurs sur 25 heures
server-over-32-days = Joueurs sur 32 jours
server-over-a-year = Joueurs sur un an
server-over-all-weeks = Joueurs sur toutes les semaines
server-ranks = Rang du serveur sur 55 semaines
# What a value of the graph is: the mean number of players in a time of this length.
server-mean-of-10-minutes = moyenne sur 10 minutes
server-mean-of-an-hour = moyenne sur une heure
server-mean-of-a-day = moyenne sur un jour
server-mean-of-a-week = moyenne sur une semaine
# What a value of the graph `server-ranks` is.
server-ranks-unit = 1 = premier ; trous : non classé
server-no-slot = Les dix premières minutes ne sont pas encore écoulées.
# $most may have a decimal.
server-busy-title = Nombre moyen de joueurs à chaque heure de la semaine. Maximum : { $most }
server-busy-caption = Nombre moyen de joueurs à chaque heure de la semaine sur 32 jours, UTC ; couleur plus vive : plus de joueurs
server-settings = Paramètres du serveur
server-settings-caption = Ce que le serveur publie, avec les noms du jeu
# The head of a column.
server-setting = Paramètre
server-rotation = Rotation des maps observée
# A list of maps with times follows.
server-rotation-meaning = La map la plus récente est en premier. Avec des scans à deux minutes d’intervalle, une map peut passer inaperçue.
# $map is a link: the map that has followed the present one each time.
server-next-map = Suivante, comme à chaque fois jusqu’ici : { $map }
server-maps-caption = Maps jouées depuis le début de la semaine
server-best-meaning = Les joueurs avec les meilleures positions des semaines clôturées, même de celles qui ne sont plus conservées.
# $ranking is such as CLQ1.
server-best-caption = Meilleures positions : { $ranking }
# The head of a column; the newest week with it is in the next one.
server-best-positions = Meilleure position
# Such as 1 in 2026-W47.
server-position-in-week = { $position } en { $week }
# $unit is such as `server-mean-of-an-hour`.
server-series-caption = { $unit }, du plus récent au plus ancien{ $zone }
server-value = Valeur
server-queried = Adresse interrogée
server-class = Classe
server-missed = Scans manqués d’affilée
server-coverage = Part de cette semaine où il a été vu
server-authentication = Authentification de ses réponses
server-no-reply = aucune réponse depuis le démarrage de clqd
# A list follows.
server-screened = Des parties de ses réponses n’ont pas été utilisées :
# $reason is a word of a program, $time when it was last the reason.
server-screened-last = { $reason }, dernière fois : { $time }
server-classes = La classe 1 est scannée toutes les 2 minutes, la 2 toutes les 10 minutes, la 3 toutes les heures, la 4 tous les jours, la 5 toutes les semaines ; la 6 et la 7 ne répondent pas.

## Banners of a server or a player

banners-heading = Widget et bannières
banners-frame = Un widget avec l’état actuel du serveur ou du joueur, pour un site web.
banners-frame-html = Widget, HTML
banners-codes = Codes à intégrer sur des forums et des sites web. La plupart des forums acceptent le BBCode ; d’autres n’ont besoin que de l’adresse de l’image, qui finit par .png.
# $size is `banners-wide`, `banners-box`, `banners-small` or `banners-card`.
banners-size = { $size }, { $width } × { $height } pixels
banners-html = { $size }, HTML
banners-bbcode = { $size }, BBCode
banners-wide = Large
banners-box = Bloc
banners-small = Petite
banners-card = Carte
banner-players = { $players }/{ $slots } joueurs
banner-rank = rang { $rank }
banner-at = à { $time } UTC
banner-seen = vu le { $time } UTC
banner-never = jamais vu
banner-points = { $points } points
banner-not-seen = absent cette semaine
banner-origin = { $game } sur { $server }
banner-graph = joueurs, 25 heures

## Frames of other sites

embed-players = { $count }/{ $most } joueurs
# $map is a link.
embed-players-on-map = { $count }/{ $most } joueurs sur { $map }
# The next two are of a player.
embed-playing-now = en jeu maintenant
embed-last-seen = dernière activité : { $day }
# $server is a link.
embed-playing-on = { $game }, en jeu maintenant sur { $server }
embed-game-last-seen = { $game }, dernière activité : { $time }
embed-never-seen = { $game }, aucune activité

## Boards

# $window is a week, a day or another period: 2026-W47, or 16 to 22 Nov 2026 (2026-W47).
boards-rankings-of = Classements de { $window }
# $ranking is the name of a ranking, such as ELO.
boards-ranking-in = { $ranking }, { $window }
# For those who hear the page. $ranking is the name of a ranking, $scope that of a server, a game or a tag.
boards-table-of = { $ranking } : { $scope }
boards-all-rankings = Tous les classements
# A link from the best players to all.
boards-all-players =
    { $count ->
        [one] Voir { $count } joueur
       *[other] Voir les { $count } joueurs
    }
boards-find-player = Trouver un joueur dans ce classement
# $name is what the visitor has entered.
boards-not-found = Introuvable : aucun joueur de ce classement n’a les mots { $name } dans son pseudo.
# Links to the first page of a board, to better positions, to further positions, and to the last page.
boards-pages = Pages du classement
boards-first = Premiers
boards-better = Précédents
boards-further = Suivants
boards-last = Derniers
# $first and $last are positions: 51 to 100 of 1,204 players.
boards-shown =
    { $count ->
        [one] { $first } à { $last } sur { $count } joueur
       *[other] { $first } à { $last } sur { $count } joueurs
    }
# The state of a week or another period.
boards-closed = Période clôturée : résultats définitifs.
boards-running = Période en cours : résultats provisoires.
# Follows boards-running or home-provisional: of the time of the week. $share is such as 66.7 %.
boards-coverage = Serveurs vus pendant { $share } du temps.
# The period that is shown.
boards-window = Période
# Explains the head # of a column.
boards-position = position
# The head of a column: when a player reached the score.
boards-reached = Atteint
# The head of the column with the next three: how many positions a player has moved since the week before.
boards-change = Évol.
boards-new = nouveau
boards-up = +{ $count }
boards-down = −{ $count }
boards-no-player = Aucun joueur pour l’instant.
# What has changed since the week before. $player and $game are links; $position is mover-position, $up is mover-up-from.
mover-up = { $player } passe { $position } sur { $game }, { $up } la semaine précédente.
mover-new = { $player } arrive { $position } sur { $game }, hors classement la semaine précédente.
# In mover-up and mover-new, bold: number 3.
mover-position = n° { $position }
# In mover-up, coloured; $before is the position in the week before.
mover-up-from = contre n° { $before }
# Follows mover-up or mover-new: when the player reached the score.
mover-score = Score du { $time }.

## Games and tags

groups-games-caption = Jeux avec des serveurs en ligne
groups-tags = Tags
groups-tags-caption = Tags des serveurs en ligne
groups-most-played = Les { $count } avec le plus de joueurs, sur { $most }.
# The heading of the page of a game, and of that of a tag.
groups-game = Jeu { $name }
groups-tag = Tag { $name }
groups-peak = Maximum de joueurs sur 25 heures
groups-servers-of-game = Tous les serveurs de ce jeu
groups-servers-of-tag = Tous les serveurs avec ce tag
# For search engines. $name is that of a game or a tag.
groups-description = { $name } : serveurs en ligne, joueurs au fil du temps et classements par semaine.

## Maps

map-none-yet = Rien pour l’instant : ces chiffres ont jusqu’à dix minutes de retard.
# $count: at most 200 maps.
map-list-caption = Les maps les plus jouées de toutes les semaines conservées, tous serveurs confondus ; { $count } au maximum
# The head of a column with the number of weeks.
map-week-count = Semaines
map-share = Part du temps de jeu
map-title = Map { $name }
map-players-now = Joueurs en ce moment
map-servers-now = Serveurs sur cette map
map-servers-caption = Serveurs avec cette map, les plus peuplés d’abord
map-hours-title = Heures de jeu de tous les joueurs
# The heading of a table with a row for each week.
map-weeks = Semaines
map-weeks-caption = Temps de jeu sur cette map par semaine, tous serveurs confondus. La semaine en cours est provisoire.
map-player-hours = Heures cumulées
# For search engines.
map-description = La map { $name } : combien elle a été jouée par semaine, et les serveurs où elle tourne en ce moment.

## Tables of servers

server-table-25-hours = 25 heures
# The head of the column that says when a server was seen: now, a time, or never.
server-table-seen = Vu
server-table-never = jamais
# Of a server.
server-table-not-ranked = non classé
server-table-none = Aucun serveur.
# Of a server: as many players as it can have.
server-table-full = complet
server-table-not-believed = Le serveur annonce plus de joueurs qu’il ne peut en avoir. Ce nombre n’est pas utilisé.

## List of servers

servers-further = Serveurs suivants
servers-caption-added = Tous les serveurs, par ordre d’ajout
servers-caption-players = Serveurs en ligne, les plus peuplés d’abord
servers-caption-rank = Serveurs classés, les meilleurs de la dernière semaine clôturée d’abord
servers-caption-name = Serveurs qui répondent, par nom
# The filters. servers-all is the choice of all games, tags, countries or states.
servers-contains = Nom, adresse ou map contient
servers-all = tous
servers-state = État
servers-online = en ligne
# How the list is ordered: by the time when servers were added, by players, by rank, by name.
servers-order = Tri
servers-order-added = ajout
servers-order-players = joueurs
servers-order-rank = rang
servers-order-name = nom

## Search

# A heading.
search-title = Recherche
search-enter = Saisir le nom d’un serveur, d’un joueur, d’un jeu ou d’une map.
# $text is what the visitor has entered.
search-for = Recherche : { $text }
# After the name of a player, and a comma or a space.
search-last-seen = dernière activité : { $time }
search-more-players = Il y en a d’autres. Un texte plus long en trouve moins.
search-players-caption = Joueurs dont le pseudo correspond au texte
# The head of a column with positions. $ranking is CLQ1.
search-rank = { $ranking } cette semaine
# $text is what the visitor has entered.
search-nothing = Rien trouvé pour { $text } : aucun pseudo, aucun nom de serveur, de jeu ou de map ne contient ce texte, ni aucune adresse de serveur. La casse n’a pas d’importance.
search-servers-caption = Serveurs dont le nom ou l’adresse correspond au texte
search-more-servers = Il y en a peut-être d’autres. Un texte plus long en trouve moins.
search-games-and-maps = Jeux et maps
# $name is that of a game, which is said after it; so in search-map.
search-game = { $name }, jeu
search-map = { $name }, map
# After the name of a server: 3/16 on q3dm17.
search-players-on = { $players } sur { $map }

## Feeds

# $name is that of a server or a game.
feeds-title = { $name } : vainqueurs de la semaine
# $ranking is the name of a ranking; a list of players follows.
feeds-ranking = { $ranking } :

## How it works

about-title = Comment ça marche
about-scans = Chaque serveur de jeu répond à une petite requête : sa map, ses joueurs et leurs points. Ce site interroge chaque serveur au rythme qu’il mérite, de toutes les deux minutes à une fois par semaine, et compare chaque réponse à la précédente. Cela suffit pour savoir qui est arrivé, qui est parti, qui a marqué et quand une manche s’est terminée. Aucun plugin n’est nécessaire sur les serveurs.
about-rankings = Classements
about-windows = Chaque classement est calculé par semaine, pour chaque serveur, jeu et tag, ainsi que sur d’autres périodes définies par le site.
about-clq1 = CLQ1, points par minute
about-clq1-meaning = À quelle vitesse un joueur marque des points. Le temps de jeu est découpé en tranches de 12 minutes ; le score est la moyenne des dix meilleures tranches de la semaine. Celles qui manquent comptent pour 0 : un score complet demande 2 heures.
about-clq2 = CLQ2, points de victoire
about-clq2-meaning = Être en haut de la liste en fin de manche : plus il y a de joueurs derrière, plus ça rapporte de points.
about-elo = ELO, cote
about-elo-meaning = Chaque manche est un duel de chaque joueur contre chacun des autres. Le mieux placé gagne et prend de l’ELO à l’autre.
about-points-meaning = Tous les points marqués dans la semaine.
about-time-meaning = Temps passé sur le serveur.
about-example = Un exemple
# Visor is the name of a player; Points and Time are the rankings `points` and `time-ranking`.
about-example-of-scans = Un scan à 20:00 montre Visor avec 10 points, le suivant à 20:02 avec 14. Visor a joué 120 secondes et marqué 4 points : 4 s’ajoutent à Points et 2 minutes à Temps, et sur ce bout de partie, la vitesse était de 4 / 2 = 2 points par minute. Si le scan de 20:04 montre 2 points et une nouvelle map, une manche s’est terminée : la liste de 20:02, la dernière vue, est évaluée pour CLQ2 et ELO.
# $accuracy is the link `about-accuracy`.
about-measured = L’écart entre les classements et ce qui s’est vraiment passé est mesuré : { $accuracy }.
about-accuracy = précision
about-unknown = Ce qu’on ne peut pas savoir
about-unseen = Ce qui se passe entre deux scans : un passage d’une minute peut être manqué, et les points marqués après le dernier scan d’une manche ne sont pas vus. Les estimations correspondantes sont affichées à part et jamais classées.
about-same-names = Qui se cache derrière un joueur : les joueurs sont identifiés par leur pseudo. Deux personnes avec le même pseudo dans un jeu ne font qu’un joueur.
about-untrue = Si un serveur dit la vérité. Les réponses invraisemblables ne sont pas utilisées ; la page du serveur dit pourquoi.
about-figures = Chiffres
about-players = Joueurs d’un serveur : ceux de sa dernière réponse. Les graphiques montrent des moyennes ; un trou signifie qu’aucune réponse n’a été reçue.
about-provisional = La semaine en cours est provisoire. Elle devient définitive une fois clôturée.
about-opting-out = Ne plus apparaître
about-how-to-opt-out = Admins de serveur : si un serveur ne doit pas être scanné ou listé, ou s’il est scanné trop souvent, il suffit d’écrire à l’admin de ce site. Joueurs : un pseudo et toutes ses données sont supprimés sur demande, et le pseudo n’est plus jamais enregistré.
about-contact = Contact : { $contact }
about-no-contact = Contact : l’admin du site n’en a pas indiqué.

## Accuracy

accuracy-title = Précision
accuracy-heading = À quel point les classements sont fidèles à la réalité
accuracy-simulation = Personne ne dit à ce site ce qui s’est passé sur un serveur. Il ne voit que des listes de joueurs, une toutes les deux minutes environ. Ce qui lui échappe peut être mesuré là où tout est connu : dans une simulation. Elle couvre une semaine de 48 serveurs et environ 45 000 manches de 5 à 40 minutes, avec des joueurs qui vont et viennent à leur guise. Le programme qui fait tourner ce site les scanne, et ses classements sont comparés aux vrais.
accuracy-rounds = Manches et totaux
# Heads of columns; they are explained by the texts `accuracy-...-meaning`.
accuracy-scans = scans
accuracy-time = temps
accuracy-points = points
accuracy-found = trouvées
accuracy-winner = vainqueur
accuracy-top-3 = top 3
accuracy-sure = sûres
accuracy-right = justes
# $number has decimals, such as +1.3.
accuracy-order = Ordre des joueurs
accuracy-scans-meaning = Scans : par serveur, en deux minutes. * À heures fixes ; tous les autres sont faits quand ils en apprennent le plus, par exemple juste avant la fin d’une manche. 1,13 est ce que fait le programme, sauf si l’admin en décide autrement.
# The heads of columns that the next text explains.
accuracy-time-points = temps, points
accuracy-time-points-meaning = Le total de tous les joueurs, comparé à ce qu’ils ont vraiment joué et marqué.
accuracy-found-winner-top-3 = trouvées, vainqueur, top 3
accuracy-found-winner-top-3-meaning = Combien de manches ont été trouvées, avec le bon vainqueur, avec le bon top 3. Une manche n’est pas trouvée si elle était trop courte ou si personne n’est resté.
accuracy-sure-right = sûres, justes
accuracy-sure-right-meaning = Combien de manches trouvées sont marquées comme sûres, parce qu’un scan a vu leur fin, et combien de celles-ci ont le bon vainqueur.
accuracy-order-of-players = ordre des joueurs
accuracy-order-of-players-meaning = À quel point l’ordre des joueurs sur un serveur correspond à l’ordre réel : 1, c’est le même ordre ; 0, c’est le hasard.
accuracy-known = Ce qu’un classement peut savoir, et ce qu’il ne peut pas
accuracy-who-played = Qui a joué, et combien de temps : c’est connu aussi précisément que le permet l’intervalle entre deux scans.
accuracy-unseen = Les points marqués entre le dernier scan d’une manche et sa fin ne sont pas vus. Les totaux de points sont donc trop bas.
accuracy-estimates = Les estimations de temps et de points incluent ce qu’aucun scan n’a vu. Chacune a une marge d’erreur : dans quatre cas sur cinq, la vraie valeur s’y trouve.
accuracy-closer = L’ordre des joueurs est plus proche de la réalité que les totaux.
accuracy-honest = Les joueurs simulés sont honnêtes, et chacun a son propre pseudo. Les vrais partagent des pseudos et en changent.
# $command is the command of a program; $about is the link `about-title`.
accuracy-measured = Comment c’est mesuré, et d’autres types de manches : { $command }. { $about }.
