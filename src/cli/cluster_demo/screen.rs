//! The screen of the demonstration.

use super::status::Picture;
use super::{COUNT, Demo, SCREEN_INTERVAL, Show};
use crate::cli::screen::{Line, Screen, Style, framed};

const KINDS: [&str; 3] = [" database ", " engines ", " scanners "];

/// Shows the screen while `run` runs.
pub fn show(run: impl FnOnce(Show) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut screen = Screen::start()?;
    run(&mut |demo, picture| {
        screen.draw(|size| draw(size, demo, picture))?;
        Ok(screen.key(SCREEN_INTERVAL)?)
    })
}

fn draw((width, height): (usize, usize), demo: &Demo, picture: &Picture) -> Vec<Line> {
    let mut lines =
        vec![Line::new(" clqd cluster demo ", Style::Title).and(format!("  {}", picture.servers()), Style::Plain)];
    for (kind, title) in KINDS.into_iter().enumerate() {
        let parts = (0..COUNT).map(|n| line(demo, picture, COUNT * kind + n)).collect();
        lines.extend(framed(title, "", parts, (width, COUNT + 2)));
    }
    let events_height = height.saturating_sub(lines.len() + 1).max(4);
    let events = picture.last_events(events_height - 2);
    let events = events.iter().map(|event| Line::from(format!(" {event}"))).collect();
    lines.extend(framed(" what happened ", "", events, (width, events_height)));
    lines.push(Line::new(" 1 to 9 kills a part; it starts again by itself. q quits", Style::Soft));
    lines
}

fn line(demo: &Demo, picture: &Picture, number: usize) -> Line {
    let part = demo.parts().nth(number).expect("there are nine");
    let what = picture.what(demo, number);
    let style = match () {
        () if part.is_away() => Style::Bad,
        () if what.starts_with("LEADS") => Style::Good,
        () if ["ready", "follows", "in "].iter().any(|begin| what.starts_with(begin)) => Style::Plain,
        () => Style::Warning,
    };
    Line::from(format!(" {}  {:<11} ", number + 1, part.name)).and(what, style)
}
