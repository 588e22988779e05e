//! What a banner shows, and where: shapes for [`super::svg`] and [`super::png`].

use std::fmt;

use super::size::Size;
use super::text::{Fitted, clean, fit};
use crate::web::pages::chart::{Run, SPARKLINE_POINTS, sparkline_runs};
use crate::web::texts::text;

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Colour(pub u8, pub u8, pub u8);

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

pub(super) const BACKGROUND: Colour = Colour(0x0d, 0x11, 0x17);
pub(super) const BORDER: Colour = Colour(0x30, 0x36, 0x3d);
const TEXT: Colour = Colour(0xe6, 0xed, 0xf3);
const SOFT: Colour = Colour(0x9a, 0xa5, 0xb1);
const LINE: Colour = Colour(0x58, 0xa6, 0xff);
const GREEN: Colour = Colour(0x56, 0xd3, 0x64);
const RED: Colour = Colour(0xff, 0x8e, 0x88);
const GREY: Colour = Colour(0x6e, 0x76, 0x81);

/// Of the frame, pixels.
pub(super) const CORNER_RADIUS: f32 = 3.0;

/// Between facts of a line.
const SEPARATOR: &str = "·";

/// On each side of a separator, pixels.
const SEPARATOR_MARGIN: f32 = 4.0;

/// Least width of a truncated fact, pixels.
const FACT_WIDTH_MIN: f32 = 60.0;

/// A banner of a size: a frame, and the shapes in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picture {
    pub size: Size,
    /// The text alternative of the image.
    pub title: String,
    pub shapes: Vec<Shape>,
}

/// Positions and sizes are pixels.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Dot {
        x: f32,
        y: f32,
        radius: f32,
        colour: Colour,
    },
    /// Each fact is a separate text, so right-to-left text in one does not reorder the others.
    Text {
        fitted: Fitted,
        left: f32,
        baseline: f32,
        font_size: f32,
        colour: Colour,
    },
    Line {
        runs: Vec<Run>,
        width: f32,
        colour: Colour,
    },
}

/// The dot before the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Online,
    Offline,
    /// Neither good nor bad, such as a player who is not on a server now.
    Absent,
}

/// The content of a banner. All text may come from strangers.
#[derive(Clone, Debug)]
pub(super) struct Banner {
    pub mark: Mark,
    pub name: String,
    /// Below the name; not in the smallest size.
    pub origin: String,
    /// Facts by line, the most important first. Sizes with one line show as many facts as fit on
    /// it.
    pub facts: [Vec<String>; 3],
    /// Mean players of each ten minutes. Without values there is no graph.
    pub players: Vec<Option<f64>>,
}

/// The positions of the parts of a banner, pixels.
struct Layout {
    /// Left edge of all text but the name; right edge of lines without a graph.
    left: f32,
    right: f32,
    /// Baseline and font size.
    name: (f32, f32),
    origin: Option<(f32, f32)>,
    /// Baselines, and font size.
    facts: (&'static [f32], f32),
    /// Left and upper edge, height.
    graph: Option<Graph>,
}

/// A graph with its title below it.
struct Graph {
    left: i64,
    top: i64,
    height: i64,
    /// Pixels between two points.
    step: i64,
    /// The lines that end before the graph begin at this baseline.
    first_line: f32,
}

fn layout(size: Size) -> Layout {
    match size {
        Size::Wide => Layout {
            left: 10.0,
            right: 458.0,
            name: (19.0, 15.0),
            origin: Some((36.0, 11.0)),
            facts: (&[52.0], 12.0),
            graph: Some(Graph { left: 358, top: 8, height: 34, step: 2, first_line: 0.0 }),
        },
        Size::Box => Layout {
            left: 10.0,
            right: 340.0,
            name: (22.0, 16.0),
            origin: Some((39.0, 11.0)),
            facts: (&[58.0, 74.0, 90.0], 12.0),
            graph: Some(Graph { left: 240, top: 46, height: 32, step: 2, first_line: 50.0 }),
        },
        Size::Small => {
            Layout { left: 6.0, right: 155.0, name: (16.0, 12.0), origin: None, facts: (&[32.0], 11.0), graph: None }
        }
        Size::Card => Layout {
            left: 70.0,
            right: 1_130.0,
            name: (170.0, 68.0),
            origin: Some((236.0, 34.0)),
            facts: (&[370.0, 432.0, 494.0], 42.0),
            graph: Some(Graph { left: 730, top: 330, height: 180, step: 8, first_line: 340.0 }),
        },
    }
}

impl Banner {
    pub fn draw(self, size: Size) -> Picture {
        let layout = layout(size);
        let name = clean(&self.name);
        let origin = clean(&self.origin);
        let clean_line = |line: Vec<String>| -> Vec<String> {
            line.iter().map(|fact| clean(fact)).filter(|fact| !fact.is_empty()).collect()
        };
        let facts: Vec<Vec<String>> = self.facts.into_iter().map(clean_line).filter(|line| !line.is_empty()).collect();
        let graph = layout.graph.as_ref().filter(|_| self.players.iter().any(Option::is_some));
        let right = |baseline: f32| match graph {
            Some(graph) if baseline >= graph.first_line => graph.left as f32 - 8.0,
            _ => layout.right,
        };
        let (name_y, name_size) = layout.name;
        let radius = name_size * 0.28;
        let name_left = layout.left + 2.0 * radius + name_size.max(15.0) / 3.0;
        let name_line = fit(&name, name_size, right(name_y) - name_left);
        let (baselines, facts_size) = layout.facts;
        let separator = fit(SEPARATOR, facts_size, f32::MAX);
        let colour = match self.mark {
            Mark::Online => GREEN,
            Mark::Offline => RED,
            Mark::Absent => GREY,
        };
        let title = [name.as_str(), origin.as_str()].into_iter().chain(facts.iter().flatten().map(String::as_str));
        let title = title.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let facts = if baselines.len() == 1 { vec![facts.concat()] } else { facts };
        let mut shapes = vec![Shape::Dot { x: layout.left + radius, y: name_y - name_size * 0.36, radius, colour }];
        let mut write = |fitted: Fitted, left, baseline, font_size, colour| {
            if fitted.width > 0.0 {
                shapes.push(Shape::Text { fitted, left, baseline, font_size, colour });
            }
        };
        write(name_line, name_left, name_y, name_size, TEXT);
        if let Some((y, font_size)) = layout.origin {
            write(fit(&origin, font_size, right(y) - layout.left), layout.left, y, font_size, SOFT);
        }
        for (line_facts, &y) in facts.iter().zip(baselines) {
            let line = fact_line(line_facts, facts_size, right(y) - layout.left);
            for (n, (offset, fact)) in line.into_iter().enumerate() {
                let left = layout.left + offset;
                if n > 0 {
                    write(separator.clone(), left - SEPARATOR_MARGIN - separator.width, y, facts_size, SOFT);
                }
                write(fact, left, y, facts_size, if self.mark == Mark::Offline { RED } else { TEXT });
            }
        }
        if let Some(graph) = graph {
            draw_players(graph, &self.players, &mut shapes);
        }
        Picture { size, title, shapes }
    }
}

/// The facts that fit on one line, with their distance from its left end. Only the last may be
/// truncated.
fn fact_line(facts: &[String], font_size: f32, width_max: f32) -> Vec<(f32, Fitted)> {
    let gap = fit(SEPARATOR, font_size, f32::MAX).width + 2.0 * SEPARATOR_MARGIN;
    let mut line = Vec::new();
    let mut offset = 0.0;
    for fact in facts {
        let available = width_max - offset;
        let fitted = fit(fact, font_size, available);
        let is_whole = fitted.text == *fact;
        if is_whole || available >= FACT_WIDTH_MIN {
            let width = fitted.width;
            line.push((offset, fitted));
            offset += width + gap;
        }
        if !is_whole {
            break;
        }
    }
    line
}

fn draw_players(graph: &Graph, players: &[Option<f64>], shapes: &mut Vec<Shape>) {
    let Graph { left, top, height, step, .. } = *graph;
    let right = left + step * SPARKLINE_POINTS;
    // As large as the graph.
    let zoom = step as f32 / 2.0;
    let mut runs = sparkline_runs(players, step, height);
    for (x, y) in runs.iter_mut().flatten() {
        (*x, *y) = (*x + left, *y + top);
    }
    let bottom = top + height;
    shapes.push(Shape::Line { runs: vec![vec![(left, bottom), (right, bottom)]], width: 1.0, colour: BORDER });
    shapes.push(Shape::Line { runs, width: 1.5 * zoom, colour: LINE });
    let font_size = 9.0 * zoom;
    let fitted = fit(&text!("banner-graph"), font_size, (right - left) as f32);
    shapes.push(Shape::Text {
        fitted,
        left: left as f32,
        baseline: bottom as f32 + 11.0 * zoom,
        font_size,
        colour: SOFT,
    });
}
