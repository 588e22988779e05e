//! How the rankings work, what cannot be known, how to opt out.

use std::sync::Arc;

use axum::extract::State;
use maud::html;

use super::layout::{Page, PageResult};
use super::names;
use crate::web::context::WebContext;
use crate::web::texts::{rich_text, text};

pub(super) async fn page(State(context): State<Arc<WebContext>>) -> PageResult {
    let status = context.status().await?;
    let contact = status.daemon.as_ref().and_then(|daemon| daemon.public.contact.as_deref());
    let accuracy = html! { a href="/about/accuracy" { (text!("about-accuracy")) } };
    let body = html! {
        h1 { (text!("about-title")) }
        p { (text!("about-scans")) }
        h2 { (text!("about-rankings")) }
        p { (text!("about-windows")) }
        dl {
            dt { (text!("about-clq1")) }
            dd { (text!("about-clq1-meaning")) }
            dt { (text!("about-clq2")) }
            dd { (text!("about-clq2-meaning")) }
            dt { (text!("about-elo")) }
            dd { (text!("about-elo-meaning")) }
            dt { (text!("points")) }
            dd { (text!("about-points-meaning")) }
            dt { (text!("time-ranking")) }
            dd { (text!("about-time-meaning")) }
        }
        h3 { (text!("about-example")) }
        p { (text!("about-example-of-scans")) }
        p { (rich_text!("about-measured", accuracy = accuracy)) }
        h2 { (text!("about-unknown")) }
        ul {
            li { (text!("about-unseen")) }
            li { (text!("about-same-names")) }
            li { (text!("about-untrue")) }
        }
        h2 { (text!("about-figures")) }
        ul {
            li { (text!("about-players")) }
            li { (text!("about-provisional")) }
        }
        h2 { (text!("about-opting-out")) }
        p { (text!("about-how-to-opt-out")) }
        p {
            @match contact {
                Some(contact) => (rich_text!("about-contact", contact = names::plain(contact))),
                None => (text!("about-no-contact")),
            }
        }
    };
    Ok(Page::new(text!("about-title"), body))
}
