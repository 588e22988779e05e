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

fn draw(frame: &mut Frame, state: &DemoState) {
    let [header, body, footer] =
        Layout::vertical([Constraint::Length(2), Constraint::Min(10), Constraint::Length(2)]).areas(frame.area());
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
    let [scans, rate, outbox] =
        Layout::vertical([Constraint::Length(11), Constraint::Min(4), Constraint::Length(8)]).areas(left);
    draw_scans(frame, scans, state);
    // The sparkline has one column per poll; the border takes two.
    let width = rate.width.saturating_sub(2) as usize;
    let newest = &state.history[state.history.len().saturating_sub(width)..];
    let sparkline = Sparkline::default().data(newest).style(Style::new().fg(Color::Cyan));
    frame.render_widget(sparkline.block(Block::bordered().title(" scans a second ")), rate);
    draw_outbox(frame, outbox, state);
    draw_top(frame, right, state);
    let help = format!(
        " Website: http://{}  q or Ctrl-C quits.  From another terminal:  clqd --socket {} status | player NAME",
        state.website,
        state.socket.display()
    );
    frame.render_widget(Paragraph::new(help).style(Style::new().fg(Color::DarkGray)), footer);
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
        Some(archive) => match &archive.fault {
            Some(fault) => fault.message.clone(),
            None if archive.connected => "connected".to_owned(),
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
    let title = format!(
        " {} of {} players on {} ({}, {}/{}) ",
        top.ranking.name(),
        top.size,
        server.url,
        server.map.as_deref().unwrap_or("?"),
        server.players,
        server.slots
    );
    frame.render_widget(Table::new(rows, widths).header(header).block(Block::bordered().title(title)), area);
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
