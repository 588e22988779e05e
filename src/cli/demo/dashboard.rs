//! The demo's screen: scans by class, counters with the archive state, and a live top list.

use std::time::Duration;

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table};
use tokio_util::sync::CancellationToken;

use crate::cli::demo::sampler::DemoState;
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
    let mut terminal = ratatui::try_init()?;
    let result = async {
        let mut tick = tokio::time::interval(poll_interval);
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep_until(end) => return Ok(()),
                _ = tick.tick() => {
                    state.poll(daemon).await?;
                    terminal.draw(|frame| draw(frame, state))?;
                    if is_quit()? {
                        return Ok(());
                    }
                }
            }
        }
    }
    .await;
    ratatui::restore();
    result
}

/// Reads the pending terminal events until one is a quit key (`q`, Esc or Ctrl-C). In raw
/// mode the terminal reports Ctrl-C as a key, not as a signal.
fn is_quit() -> std::io::Result<bool> {
    while event::poll(Duration::ZERO)? {
        if let Event::Key(key) = event::read()? {
            let ctrl_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if ctrl_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Heights of the blocks on the left, borders included: a line for each class and a heading, and the
/// counters.
const SCANS_HEIGHT: u16 = 10;
const COUNTERS_HEIGHT: u16 = 8;

/// Least height of the graph of scans, borders included. A smaller screen has no graph.
const RATE_HEIGHT_MIN: u16 = 3;

fn draw(frame: &mut Frame, state: &DemoState) {
    let hint = hint(state, frame.area().width);
    let hint_height = hint.len() as u16;
    let [header, body, footer] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(10), Constraint::Length(hint_height)])
            .areas(frame.area());
    let engine = &state.status.engine;
    let title = Line::from(vec![
        Span::styled(" clqd demo ", Style::new().fg(Color::Black).bg(Color::Cyan).add_modifier(Modifier::BOLD)),
        Span::raw(format!(
            "  week {}   {} servers   {} players online   {} known",
            engine.week, engine.servers, engine.players_online, engine.players_known
        )),
    ]);
    frame.render_widget(Paragraph::new(title), header);
    let [left, right] = Layout::horizontal([Constraint::Length(38), Constraint::Min(40)]).areas(body);
    let rate_height = left.height.saturating_sub(SCANS_HEIGHT + COUNTERS_HEIGHT);
    let rate_height = if rate_height < RATE_HEIGHT_MIN { 0 } else { rate_height };
    let heights = [SCANS_HEIGHT, rate_height, COUNTERS_HEIGHT].map(Constraint::Length);
    let [scans, rate, outbox] = Layout::vertical(heights).areas(left);
    draw_scans(frame, scans, state);
    // The sparkline has one column per poll; the border takes two.
    let width = rate.width.saturating_sub(2) as usize;
    let newest = &state.history[state.history.len().saturating_sub(width)..];
    let sparkline = Sparkline::default().data(newest).style(Style::new().fg(Color::Cyan));
    frame.render_widget(sparkline.block(Block::bordered().title(" scans a second ")), rate);
    draw_outbox(frame, outbox, state);
    draw_top(frame, right, state);
    frame.render_widget(Paragraph::new(hint).style(Style::new().fg(Color::DarkGray)), footer);
}

/// The next commands to try, in as many lines as they need.
fn hint(state: &DemoState, width: u16) -> Vec<Line<'static>> {
    let lines = [
        format!(" website   http://{}   (q or Ctrl-C quits)", state.website),
        format!(" commands  clqd --socket {} status", state.socket.display()),
    ];
    let width = usize::from(width.max(1));
    let parts = |line: &String| {
        let chars: Vec<char> = line.chars().collect();
        chars.chunks(width).map(|part| Line::from(part.iter().collect::<String>())).collect::<Vec<_>>()
    };
    lines.iter().flat_map(parts).collect()
}

fn draw_scans(frame: &mut Frame, area: Rect, state: &DemoState) {
    let engine = &state.status.engine;
    let rows = (0..7).map(|class| {
        Row::new(vec![
            Cell::from(format!("class {}", class + 1)),
            Cell::from(format!("{:>7}", engine.servers_by_class[class])),
            Cell::from(format!("{:>8.1}", state.per_second[class])),
        ])
    });
    let header = Row::new(vec!["", "servers", " scans/s"]).style(Style::new().fg(Color::DarkGray));
    let widths = [Constraint::Length(8), Constraint::Length(8), Constraint::Length(9)];
    let table = Table::new(rows, widths).header(header).block(Block::bordered().title(" scans by class "));
    frame.render_widget(table, area);
}

/// Draws the counters since the start, the outbox and the archive state.
fn draw_outbox(frame: &mut Frame, area: Rect, state: &DemoState) {
    let counts = &state.status.engine.counts;
    let archive = match &state.status.archive {
        None => "none (--mysql URL)".to_owned(),
        Some(archive) => match &archive.public.fault {
            Some(_) => archive.fault_message.clone().unwrap_or_default(),
            None if archive.public.connected => "connected".to_owned(),
            None => "connecting".to_owned(),
        },
    };
    let text = vec![
        Line::from(format!("snapshots  {:>10}", counts.snapshots)),
        Line::from(format!("partial    {:>10}", counts.partial_snapshots)),
        Line::from(format!("missed     {:>10}", counts.misses)),
        Line::from(format!("rounds     {:>10}", counts.rounds)),
        Line::from(format!("outbox     {:>10} waiting", state.status.outbox_entries)),
        Line::from(format!("archive    {archive}")),
    ];
    frame.render_widget(Paragraph::new(text).block(Block::bordered().title(" since the start ")), area);
}

fn draw_top(frame: &mut Frame, area: Rect, state: &DemoState) {
    let (Some(top), Some(server)) = (&state.top, &state.server) else {
        frame.render_widget(Paragraph::new("looking for players ...").block(Block::bordered()), area);
        return;
    };
    let rows = top.rows.iter().map(|row| {
        let change = state.position_change(row.player_key, row.position);
        let style = match change.as_str() {
            "" => Style::new(),
            down if down.starts_with('-') => Style::new().fg(Color::Red),
            _ => Style::new().fg(Color::Green).add_modifier(Modifier::BOLD),
        };
        Row::new(vec![
            Cell::from(format!("{:>3}", row.position)),
            Cell::from(row.name.clone()),
            Cell::from(format!("{:>10}", format_score(top.ranking, row.score))),
            Cell::from(change),
        ])
        .style(style)
    });
    let header = Row::new(vec!["  #", "player", unit(top.ranking), ""]).style(Style::new().fg(Color::DarkGray));
    let widths = [Constraint::Length(4), Constraint::Min(16), Constraint::Length(11), Constraint::Length(4)];
    // Two short titles: one line would be cut at 80 columns.
    let (players, slots) = (server.players, server.slots);
    let title = format!(" {} of {} players, {players}/{slots} online ", top.ranking.name(), top.size);
    let on = format!(" {} {} ", server.url, server.map.as_deref().unwrap_or("?"));
    let block = Block::bordered().title(title).title_bottom(on);
    frame.render_widget(Table::new(rows, widths).header(header).block(block), area);
}

/// The heading of the score column, right-aligned to the scores of [`format_score`].
fn unit(ranking: Ranking) -> &'static str {
    match ranking {
        Ranking::Clq1 => "  points/s",
        Ranking::Clq2 => "      clq2",
        Ranking::Elo => "       elo",
        Ranking::Points => "    points",
        Ranking::Time => "   h:mm:ss",
    }
}

fn format_score(ranking: Ranking, score: f64) -> String {
    match ranking {
        Ranking::Clq1 => format!("{score:.5}"),
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
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    /// The lines of a screen of this size.
    fn screen(width: u16, height: u16, state: &DemoState) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(frame, state)).expect("drawn");
        let buffer = terminal.backend().buffer();
        let cells = buffer.content().chunks(width.into());
        cells.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>()).collect()
    }

    #[test]
    fn hint_and_counters_are_complete_on_every_screen() {
        let (website, socket) = ("127.0.0.1:8480", "/tmp/clqd-demo-Ab3dEf/control.sock");
        let state = DemoState::new(socket.into(), website.to_owned());
        for (width, height) in [(80, 24), (100, 30), (120, 40)] {
            let lines = screen(width, height, &state);
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
        let text: String = screen(80, 24, &long).concat().replace(' ', "");
        assert!(text.contains("/control.sockstatus"), "a long path is wrapped: {text}");
    }
}
