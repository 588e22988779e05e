//! A banner as SVG, without scripts, styles and references. Text is escaped, and
//! `textLength` fixes its width, so it fits in every font.

use maud::{Markup, html};
use unicode_width::UnicodeWidthChar;

use super::font;
use super::size::Size;
use super::text::{Fitted, clean, fit};
use crate::web::pages::chart::{SPARKLINE_POINTS, sparkline_path};
use crate::web::texts::text;

const BACKGROUND: &str = "#0d1117";
const BORDER: &str = "#30363d";
const TEXT: &str = "#e6edf3";
const SOFT: &str = "#9aa5b1";
const LINE: &str = "#58a6ff";
const GREEN: &str = "#56d364";
const RED: &str = "#ff8e88";
const GREY: &str = "#6e7681";

/// Between facts of a line.
const SEPARATOR: &str = "·";

/// On each side of a separator, pixels.
const SEPARATOR_MARGIN: f32 = 4.0;

/// Least width of a truncated fact, pixels.
const FACT_WIDTH_MIN: f32 = 60.0;

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
    left: u32,
    top: u32,
    height: u32,
    /// Pixels between two points.
    step: u32,
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
    pub fn into_svg(self, size: Size) -> String {
        let layout = layout(size);
        let (width, height) = size.pixels();
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
        let svg = html! {
            svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) }
                role="img" aria-label=(title) font-family=(font::FAMILIES) {
                title { (title) }
                rect x="0.5" y="0.5" width=(width - 1) height=(height - 1) rx="3" fill=(BACKGROUND) stroke=(BORDER) {}
                circle cx=(layout.left + radius) cy=(name_y - name_size * 0.36) r=(radius) fill=(colour) {}
                (line(&name_line, name_left, name_y, name_size, TEXT))
                @if let Some((y, font_size)) = layout.origin {
                    (line(&fit(&origin, font_size, right(y) - layout.left), layout.left, y, font_size, SOFT))
                }
                @for (line_facts, &y) in facts.iter().zip(baselines) {
                    @for (n, (offset, fact)) in fact_line(line_facts, facts_size, right(y) - layout.left).iter().enumerate() {
                        @let left = layout.left + offset;
                        @if n > 0 { (line(&separator, left - SEPARATOR_MARGIN - separator.width, y, facts_size, SOFT)) }
                        (line(fact, left, y, facts_size, if self.mark == Mark::Offline { RED } else { TEXT }))
                    }
                }
                @if let Some(graph) = graph { (players_graph(graph, &self.players)) }
            }
        };
        svg.into_string()
    }
}

/// Text with a fixed width. A character that is wide in another font is a narrow box in this one.
/// Stretching it would stretch the letters beside it, too.
fn line(Fitted { text, width }: &Fitted, left: f32, baseline: f32, font_size: f32, colour: &str) -> Markup {
    let adjust = if text.chars().any(|c| c.width() == Some(2)) { "spacing" } else { "spacingAndGlyphs" };
    html! {
        @if *width > 0.0 {
            text x=(rounded(left)) y=(baseline) font-size=(font_size) fill=(colour) textLength=(rounded(*width))
                lengthAdjust=(adjust) { (text) }
        }
    }
}

fn rounded(pixels: f32) -> f32 {
    (pixels * 100.0).round() / 100.0
}

/// The facts that fit on one line, with their distance from its left end. Only the last may be
/// truncated. Each fact is a separate text element, so right-to-left text in one does not reorder the
/// others.
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

fn players_graph(graph: &Graph, players: &[Option<f64>]) -> Markup {
    let Graph { left, top, height, step, .. } = *graph;
    let width = step * SPARKLINE_POINTS;
    // As large as the graph.
    let zoom = step as f32 / 2.0;
    let path = sparkline_path(players, step, height);
    let label = fit(&text!("banner-graph"), 9.0 * zoom, width as f32);
    html! {
        g transform={ "translate(" (left) " " (top) ")" } {
            path d={ "M0 " (height) "H" (width) } stroke=(BORDER) {}
            path d=(path) fill="none" stroke=(LINE) stroke-width=(1.5 * zoom) {}
            (line(&label, 0.0, height as f32 + 11.0 * zoom, 9.0 * zoom, SOFT))
        }
    }
}
