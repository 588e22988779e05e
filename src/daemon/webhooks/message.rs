//! The messages of webhooks: JSON for programs, and Discord's form. Pure.

use serde_json::{Value, json};

use super::look::{ClosedWeek, Happened, Leader};
use crate::config::WebhookKind;
use crate::model::Ranking;
use crate::web;

/// Longest message of Discord, characters.
const DISCORD_CHARS_MAX: usize = 2_000;

/// The site, and the game or tag, that a message is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sender {
    /// The title of the site.
    pub site: String,
    /// Where its pages are; `None`: it is not set.
    pub public_url: Option<String>,
    /// The game or tag of the boards.
    pub scope: String,
    /// The path of its page.
    pub path: String,
}

/// The body of a request with what happened, and how many of the events it has: the first ones, one at least.
pub(super) fn body(kind: WebhookKind, sender: &Sender, at_ms: i64, happened: &[Happened]) -> (Value, usize) {
    match kind {
        WebhookKind::Json => {
            let events: Vec<Value> = happened.iter().map(|happened| event(sender, happened)).collect();
            (json!({ "site": sender.site, "at_ms": at_ms, "events": events }), happened.len())
        }
        WebhookKind::Discord => {
            let (mut content, mut chars, mut events) = (String::new(), 0, 0);
            for happened in happened {
                let line = discord_line(sender, happened);
                let line: String = line.chars().take(DISCORD_CHARS_MAX - 1).collect();
                chars += line.chars().count() + 1;
                if chars > DISCORD_CHARS_MAX {
                    break;
                }
                content += if events == 0 { "" } else { "\n" };
                content += &line;
                events += 1;
            }
            // No name can mention anyone.
            (json!({ "content": content, "allowed_mentions": { "parse": [] } }), events)
        }
    }
}

fn event(sender: &Sender, happened: &Happened) -> Value {
    let mut event = match happened {
        Happened::Down(server) | Happened::Up(server) => {
            json!({ "server": server.url, "name": server.name })
        }
        Happened::Closed(ClosedWeek { week, winners }) => {
            let winners: serde_json::Map<String, Value> =
                winners.iter().map(|(ranking, names)| (ranking.name().to_owned(), json!(names))).collect();
            json!({ "scope": sender.scope, "week": week, "winners": winners })
        }
        Happened::Leads(Leader { week, player_key, name, score }) => {
            json!({ "scope": sender.scope, "week": week, "ranking": Ranking::Clq1.name(), "player_key": player_key,
                    "name": name, "score": score })
        }
    };
    event["event"] = json!(happened.event());
    event["page"] = json!(page(sender, happened));
    event["text"] = json!(text(sender, happened, str::to_owned));
    event
}

/// The URL of the page about what happened.
fn page(sender: &Sender, happened: &Happened) -> Option<String> {
    let path = match happened {
        Happened::Down(server) | Happened::Up(server) => web::server_path(&server.url),
        Happened::Closed(ClosedWeek { week, .. }) => format!("{}?window={week}#boards", sender.path),
        Happened::Leads(leader) => format!("/players/{}", leader.player_key),
    };
    sender.public_url.as_ref().map(|url| format!("{url}{path}"))
}

/// A sentence. `written` makes a name of a stranger harmless.
fn text(sender: &Sender, happened: &Happened, written: impl Fn(&str) -> String) -> String {
    let scope = written(&sender.scope);
    match happened {
        Happened::Down(server) => format!("{} does not answer any more", written(&server.name)),
        Happened::Up(server) => format!("{} answers again", written(&server.name)),
        Happened::Closed(ClosedWeek { week, winners }) => {
            let winner = |(ranking, names): &(Ranking, Vec<String>)| {
                names.first().map(|name| format!("{} {}", ranking.name().to_uppercase(), written(name)))
            };
            let winners: Vec<String> = winners.iter().filter_map(winner).collect();
            match winners[..] {
                [] => format!("{scope}: week {week} is closed"),
                _ => format!("{scope}: the winners of week {week} are {}", winners.join(", ")),
            }
        }
        Happened::Leads(Leader { week, name, score, .. }) => {
            format!("{scope}: {} leads CLQ1 in week {week} with {score}", written(name))
        }
    }
}

fn discord_line(sender: &Sender, happened: &Happened) -> String {
    let text = text(sender, happened, without_markdown);
    match page(sender, happened) {
        // Without a preview.
        Some(url) => format!("{text} <{url}>"),
        None => text,
    }
}

/// Each character that Discord could take for markup is escaped.
fn without_markdown(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::webhooks::look::Server;

    fn sender() -> Sender {
        Sender {
            site: "Clan".to_owned(),
            public_url: Some("https://stats.example.org".to_owned()),
            scope: "ours".to_owned(),
            path: "/tags/ours".to_owned(),
        }
    }

    fn all() -> Vec<Happened> {
        let server = Server {
            key: 1,
            url: "quake3://192.0.2.1:27960".to_owned(),
            name: "@everyone *x*".to_owned(),
            is_down: true,
        };
        vec![
            Happened::Down(server.clone()),
            Happened::Up(server),
            Happened::Closed(ClosedWeek {
                week: "2026-W47".to_owned(),
                winners: vec![(Ranking::Clq1, vec!["A".to_owned(), "B".to_owned()]), (Ranking::Elo, Vec::new())],
            }),
            Happened::Leads(Leader {
                week: "2026-W48".to_owned(),
                player_key: 7,
                name: "<@1>".to_owned(),
                score: "30.00 points/min".to_owned(),
            }),
        ]
    }

    #[test]
    fn discord_gets_lines_in_which_names_are_no_markup() {
        let (body, sent) = body(WebhookKind::Discord, &sender(), 5, &all());
        assert_eq!(sent, 4);
        let lines: Vec<&str> = body["content"].as_str().unwrap().lines().collect();
        assert_eq!(
            lines,
            [
                "\\@everyone \\*x\\* does not answer any more <https://stats.example.org/servers/quake3://192.0.2.1:27960>",
                "\\@everyone \\*x\\* answers again <https://stats.example.org/servers/quake3://192.0.2.1:27960>",
                "ours: the winners of week 2026-W47 are CLQ1 A <https://stats.example.org/tags/ours?window=2026-W47#boards>",
                "ours: \\<\\@1\\> leads CLQ1 in week 2026-W48 with 30.00 points/min <https://stats.example.org/players/7>",
            ]
        );
        assert_eq!(body["allowed_mentions"]["parse"], json!([]));
        let mut many: Vec<Happened> = all().into_iter().cycle().take(100).collect();
        let (mut messages, mut lines) = (0, Vec::new());
        while !many.is_empty() {
            let (body, sent) = super::body(WebhookKind::Discord, &sender(), 5, &many);
            let content = body["content"].as_str().unwrap();
            assert!(content.chars().count() <= DISCORD_CHARS_MAX);
            lines.extend(content.lines().map(str::to_owned));
            many.drain(..sent);
            messages += 1;
        }
        let each: Vec<String> = all().iter().cycle().take(100).map(|it| discord_line(&sender(), it)).collect();
        assert_eq!(lines, each);
        assert!(messages < 10, "{messages}");
    }

    #[test]
    fn programs_get_fields() {
        let (body, _) = body(WebhookKind::Json, &Sender { public_url: None, ..sender() }, 5, &all());
        assert_eq!((&body["site"], &body["at_ms"]), (&json!("Clan"), &json!(5)));
        let names: Vec<&Value> = body["events"].as_array().unwrap().iter().map(|event| &event["event"]).collect();
        assert_eq!(names, ["server_down", "server_up", "week_closed", "new_leader"]);
        assert_eq!(body["events"][0]["name"], "@everyone *x*");
        assert_eq!(body["events"][0]["page"], Value::Null);
        assert_eq!(body["events"][2]["winners"], json!({ "clq1": ["A", "B"], "elo": [] }));
        assert_eq!(body["events"][3]["player_key"], 7);
    }
}
