//! The demo's screen: scans by class, counters with the archive state, and a live top list.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::cli::demo::sampler::DemoState;
use crate::cli::screen::{Key, Line, Screen, Style, bars, beside, framed};
use crate::daemon::Daemon;
use crate::model::row::Ranking;

/// Shows the dashboard until the user quits, a stop signal is received or the deadline
/// `end` has passed.
pub(super) async fn show(
    daemon: &Daemon,
    state: &mut DemoState,
    stop: &CancellationToken,
    end: tokio::time::Instant,
    poll_interval: Duration,
) -> anyhow::Result<()> {
    let mut screen = Screen::start()?;
    let mut tick = tokio::time::interval(poll_interval);
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep_until(end) => return Ok(()),
            _ = tick.tick() => {
                state.poll(daemon).await?;
                screen.draw(|size| draw(size, state))?;
                if screen.key(Duration::ZERO)? == Some(Key::Quit) {
                    return Ok(());
                }
            }
        }
    }
}

/// Columns of the blocks on the left, and their lines, borders included: a line for each class and a
/// heading, and the counters.
const LEFT_WIDTH: usize = 38;
const SCANS_HEIGHT: usize = 10;
const COUNTERS_HEIGHT: usize = 8;

/// Least height of the graph of scans, borders included. A smaller screen has no graph.
const RATE_HEIGHT_MIN: usize = 3;

fn draw((width, height): (usize, usize), state: &DemoState) -> Vec<Line> {
    let engine = &state.status.engine;
    let counts = format!(
        "  week {}   {} servers   {} players online   {} known",
        engine.week, engine.servers, engine.players_online, engine.players_known
    );
    let hint = hint(state, width);
    let body_height = height.saturating_sub(1 + hint.len()).max(SCANS_HEIGHT);
    let rate_height = body_height.saturating_sub(SCANS_HEIGHT + COUNTERS_HEIGHT);
    let mut left = framed(" scans by class ", "", scans(state), (LEFT_WIDTH, SCANS_HEIGHT));
    if rate_height >= RATE_HEIGHT_MIN {
        let newest = &state.history[state.history.len().saturating_sub(LEFT_WIDTH - 2)..];
        left.extend(framed(" scans a second ", "", bars(newest, rate_height - 2), (LEFT_WIDTH, rate_height)));
    }
    let counters_height = COUNTERS_HEIGHT.min(body_height.saturating_sub(left.len()));
    left.extend(framed(" since the start ", "", counters(state), (LEFT_WIDTH, counters_height)));
    let mut lines = vec![Line::new(" clqd demo ", Style::Title).and(counts, Style::Plain)];
    lines.extend(beside(left, LEFT_WIDTH, top(state, (width.saturating_sub(LEFT_WIDTH), body_height))));
    lines.extend(hint);
    lines
}

/// The next commands to try, in as many lines as they need.
fn hint(state: &DemoState, width: usize) -> Vec<Line> {
    let lines = [
        format!(" website   http://{}   (q or Ctrl-C quits)", state.website),
        format!(" commands  clqd --socket {} status", state.socket.display()),
    ];
    let parts = |line: &String| {
        let chars: Vec<char> = line.chars().collect();
        let parts = chars.chunks(width.max(1));
        parts.map(|part| Line::new(part.iter().collect::<String>(), Style::Soft)).collect::<Vec<_>>()
    };
    lines.iter().flat_map(parts).collect()
}

fn scans(state: &DemoState) -> Vec<Line> {
    let servers = state.status.engine.servers_by_class;
    let rows = (0..7).map(|class| {
        Line::from(format!("class {}  {:>7}  {:>8.1}", class + 1, servers[class], state.per_second[class]))
    });
    std::iter::once(Line::new("         servers   scans/s", Style::Soft)).chain(rows).collect()
}

/// The counters since the start, the outbox and the archive state.
fn counters(state: &DemoState) -> Vec<Line> {
    let counts = &state.status.engine.counts;
    let archive = match &state.status.archive {
        None => "none (--mysql URL)".to_owned(),
        Some(archive) => match &archive.public.fault {
            Some(_) => archive.fault_message.clone().unwrap_or_default(),
            None if archive.public.connected => "connected".to_owned(),
            None => "connecting".to_owned(),
        },
    };
    let lines = [
        format!("snapshots  {:>10}", counts.snapshots),
        format!("partial    {:>10}", counts.partial_snapshots),
        format!("missed     {:>10}", counts.misses),
        format!("rounds     {:>10}", counts.rounds),
        format!("outbox     {:>10} waiting", state.status.outbox_entries),
        format!("archive    {archive}"),
    ];
    lines.map(Line::from).into()
}

fn top(state: &DemoState, size: (usize, usize)) -> Vec<Line> {
    let (Some(top), Some(server)) = (&state.top, &state.server) else {
        return framed("", "", vec![Line::from("looking for players ...".to_owned())], size);
    };
    // Position, score and change have 20 columns, the borders two.
    let name_width = size.0.saturating_sub(22);
    let row = |position: &str, name: String, score: &str, change: &str, style| {
        let mut line = Line::new(format!("{position:>3} "), style);
        line.append(Line::new(name, style).fit(name_width));
        line.and(format!(" {score:>10} {change:<4}"), style)
    };
    let mut lines = vec![row("#", "player".to_owned(), unit(top.ranking), "", Style::Soft)];
    for player in &top.rows {
        let change = state.position_change(player.player_key, player.position);
        let style = match change.as_str() {
            "" => Style::Plain,
            down if down.starts_with('-') => Style::Bad,
            _ => Style::Good,
        };
        let score = format_score(top.ranking, player.score);
        lines.push(row(&player.position.to_string(), player.name.clone(), &score, &change, style));
    }
    // Two short titles: one line would be cut at 80 columns.
    let (players, slots) = (server.players, server.slots);
    let title = format!(" {} of {} players, {players}/{slots} online ", top.ranking.name(), top.size);
    let on = format!(" {} {} ", server.url, server.map.as_deref().unwrap_or("?"));
    framed(&title, &on, lines, size)
}

/// The heading of the score column.
fn unit(ranking: Ranking) -> &'static str {
    match ranking {
        Ranking::Clq1 => "points/min",
        Ranking::Clq2 => "clq2",
        Ranking::Elo => "elo",
        Ranking::Points => "points",
        Ranking::Time => "h:mm:ss",
    }
}

fn format_score(ranking: Ranking, score: f64) -> String {
    match ranking {
        Ranking::Clq1 => format!("{:.3}", score * 60.0),
        Ranking::Elo => crate::rank::elo::shown(score).to_string(),
        Ranking::Clq2 | Ranking::Points => format!("{score:.0}"),
        Ranking::Time => {
            let seconds = score as u64;
            format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_and_counters_are_complete_on_every_screen() {
        let (website, socket) = ("127.0.0.1:8480", "/tmp/clqd-demo-Ab3dEf/control.sock");
        let state = DemoState::new(socket.into(), website.to_owned());
        for (width, height) in [(80, 24), (100, 30), (120, 40)] {
            let lines: Vec<String> = draw((width, height), &state).iter().map(Line::text).collect();
            assert_eq!(lines.len(), height);
            let text = lines.join("\n");
            for want in [
                "http://127.0.0.1:8480   (q or Ctrl-C quits)",
                "clqd --socket /tmp/clqd-demo-Ab3dEf/control.sock status",
                "class 7",
                "archive    none",
            ] {
                assert!(text.contains(want), "{width}x{height}: {want}\n{text}");
            }
        }
        let long = DemoState::new(format!("/{}/control.sock", "d".repeat(70)).into(), website.to_owned());
        let lines = draw((80, 24), &long);
        let text = lines.iter().map(Line::text).collect::<String>().replace(' ', "");
        assert!(text.contains("/control.sockstatus"), "a long path is wrapped: {text}");
    }
}
