//! What the banner of a player shows: the running week on the server where they are best.

use super::drawing::{Banner, Mark};
use crate::model::Ranking;
use crate::view::{PlayerView, PlayerWeekView};
use crate::web::pages::format::{count, duration, ranking};
use crate::web::pages::names;
use crate::web::texts::{grouped, text};

/// Positions before points and time.
const FIRST_POSITIONS: usize = 2;

/// `running_week` is the label of the running week.
pub(super) fn banner(player: PlayerView, running_week: &str) -> Banner {
    let weeks: Vec<&PlayerWeekView> = player.weeks.iter().filter(|week| week.week == running_week).collect();
    let best = weeks.iter().min_by_key(|week| positions(week).first().map_or(u32::MAX, |&(position, _)| position));
    let facts = match best {
        Some(best) => {
            let time_ms: u64 = weeks.iter().map(|week| week.time_ms).sum();
            let points = weeks.iter().map(|week| week.points).sum();
            let mut counted = vec![best.week.clone()];
            // Sums over some servers would be misleading.
            if !player.weeks_partial.contains(&best.week) {
                let points = text!("banner-points", points = grouped(points)).into_owned();
                counted.splice(0..0, [points, duration(time_ms as i64)]);
            }
            let mut first: Vec<String> = positions(best)
                .into_iter()
                .map(|(position, of)| format!("#{} {}", count(position), ranking(of).0))
                .collect();
            let rest = first.split_off(first.len().min(FIRST_POSITIONS));
            [first, counted, rest]
        }
        None => [vec![text!("banner-not-seen").into_owned()], Vec::new(), Vec::new()],
    };
    Banner {
        mark: if player.online_on.is_empty() { Mark::Absent } else { Mark::Online },
        name: names::plain_player(&player.display, &player.name),
        origin: match best {
            Some(best) => {
                let server = player.servers.iter().find(|server| server.url == best.server);
                let hostname = server.map_or("", |server| &server.hostname);
                let game = names::plain_game(&player.game, Some(&best.server));
                text!("banner-origin", game = game, server = names::plain_hostname(hostname, &best.server)).into_owned()
            }
            None => names::plain_game(&player.game, None),
        },
        facts,
        players: Vec::new(),
    }
}

/// Positions of a week on a server, the best first.
fn positions(week: &PlayerWeekView) -> Vec<(u32, Ranking)> {
    let mut positions: Vec<(u32, Ranking)> = week.positions.iter().map(|(&of, &position)| (position, of)).collect();
    positions.sort_unstable();
    positions
}
