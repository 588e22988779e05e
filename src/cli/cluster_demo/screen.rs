//! The screen of the demonstration.

use std::time::Duration;

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::status::Picture;
use super::{COUNT, Demo, Key, SCREEN_INTERVAL, Show};

const KINDS: [&str; 3] = [" database ", " engines ", " scanners "];

/// Shows the screen while `run` runs.
pub fn show(run: impl FnOnce(Show) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let cleared = terminal.clear();
    let result = cleared.map_err(anyhow::Error::new).and_then(|()| {
        run(&mut |demo, picture| {
            terminal.draw(|frame| draw(frame, demo, picture))?;
            Ok(pressed(SCREEN_INTERVAL)?)
        })
    });
    ratatui::restore();
    result
}

/// Waits for a key for a moment. In raw mode the terminal reports Ctrl-C as a key, not as a signal.
fn pressed(wait: Duration) -> std::io::Result<Option<Key>> {
    if !event::poll(wait)? {
        return Ok(None);
    }
    let Event::Key(key) = event::read()? else { return Ok(None) };
    Ok(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
        KeyCode::Char(digit @ '1'..='9') => Some(Key::Kill(digit as usize - '1' as usize)),
        _ => None,
    })
}

fn draw(frame: &mut Frame, demo: &Demo, picture: &Picture) {
    let block = Constraint::Length(COUNT as u16 + 2);
    let [title, nodes, engines, scanners, events, keys] =
        Layout::vertical([Constraint::Length(1), block, block, block, Constraint::Min(4), Constraint::Length(1)])
            .areas(frame.area());
    let name =
        Span::styled(" clqd cluster demo ", Style::new().fg(Color::Black).bg(Color::Cyan).add_modifier(Modifier::BOLD));
    frame.render_widget(Paragraph::new(Line::from(vec![name, Span::raw(format!("  {}", picture.servers()))])), title);
    for (kind, area) in [nodes, engines, scanners].into_iter().enumerate() {
        let lines: Vec<Line> = (0..COUNT).map(|n| line(demo, picture, COUNT * kind + n)).collect();
        frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(KINDS[kind])), area);
    }
    let last = picture.last_events(usize::from(events.height).saturating_sub(2));
    let last: Vec<Line> = last.iter().map(|event| Line::from(format!(" {event}"))).collect();
    frame.render_widget(Paragraph::new(last).block(Block::bordered().title(" what happened ")), events);
    let hint = " 1 to 9 kills a part; it starts again by itself. q quits";
    frame.render_widget(Paragraph::new(hint).style(Style::new().fg(Color::DarkGray)), keys);
}

fn line<'a>(demo: &Demo, picture: &Picture, number: usize) -> Line<'a> {
    let part = demo.parts().nth(number).expect("there are nine");
    let what = picture.what(demo, number);
    let colour = match () {
        () if part.is_away() => Color::Red,
        () if what.starts_with("LEADS") => Color::Green,
        () if ["ready", "follows", "in "].iter().any(|begin| what.starts_with(begin)) => Color::Reset,
        () => Color::Yellow,
    };
    let name = format!(" {}  {:<11} ", number + 1, part.name);
    Line::from(vec![Span::raw(name), Span::styled(what, Style::new().fg(colour))])
}
