//! How the rankings work, what cannot be known, how to opt out.

use std::sync::Arc;

use axum::extract::State;
use maud::html;

use super::layout::{Page, PageResult};
use super::names;
use crate::web::context::WebContext;

pub(super) async fn page(State(context): State<Arc<WebContext>>) -> PageResult {
    let status = context.status().await?;
    let contact = status.daemon.as_ref().and_then(|daemon| daemon.public.contact.as_deref());
    let body = html! {
        h1 { "How it works" }
        p {
            "Each game server answers a small query: its map, its players and their points. This site asks every server at the "
            "pace it deserves, from every two minutes to once a week, and compares each answer with the one before. From that "
            "alone it knows who came, who left, who scored and when a round ended. Servers need no plugin."
        }
        h2 { "Rankings" }
        p { "Each ranking is computed for a week, for every server, game and tag, and in further windows of time that the site has configured." }
        dl {
            dt { "CLQ1, points per second" }
            dd {
                "How fast a player collects points. Play is divided into segments of 12 minutes; the score is the mean over "
                "the best segments of the week."
            }
            dt { "CLQ2, points for winning" }
            dd { "Reaching the top of the list at the end of rounds: the more players are below, the more points." }
            dt { "ELO, rating" }
            dd { "Every round is a match of each player against every other. The one in the higher position wins, and takes rating from the other." }
            dt { "Points" }
            dd { "All points collected in the week." }
            dt { "Time" }
            dd { "Time on the server." }
        }
        h3 { "An example" }
        p {
            "A scan at 20:00 shows Visor with 10 points, the next one at 20:02 with 14. Visor has played 120 seconds and "
            "collected 4 points: 4 are added to Points and 2 minutes to Time, and in this piece of play the speed was "
            "4 / 120 = 0.033 points per second. If the scan at 20:04 shows 2 points and a new map, a round has ended: the list of 20:02, "
            "the last one that was seen, is rated for CLQ2 and ELO."
        }
        p { "How close the rankings come to what happened is measured: " a href="/about/accuracy" { "accuracy" } "." }
        h2 { "What cannot be known" }
        ul {
            li { "What happens between two scans: a stay of a minute may be missed, and points after the last scan of a round are not seen. Estimates of that are shown separately and never ranked." }
            li { "Who a player is: players are identified by their names. Two people with the same name in one game are one player." }
            li { "Whether a server tells the truth. Implausible answers are not used; the page of a server says why." }
        }
        h2 { "Figures" }
        ul {
            li { "Players of a server: of its last answer. Graphs show means; a gap means that no answer was received." }
            li { "A running week is provisional. It is final when it is closed." }
        }
        h2 { "Opting out" }
        p {
            "Operators of a server: if it shall not be scanned or listed, or is scanned too often, write to the operator of this site. Players: "
            "a name and all of its data are deleted on request, and the name is never stored again."
        }
        p { "Contact: " @match contact { Some(contact) => (names::plain(contact)), None => "the operator has not set one." } }
    };
    Ok(Page::new("How it works", body))
}
