//! `/problems/{name}`: what an error of the API means. The `type` of each error is the URL of such
//! a page.

use axum::extract::Path;
use maud::html;

use super::layout::{About, Page, PageResult};
use crate::web::answer::STATIC_MAX_AGE_S;
use crate::web::problem::{Problem, ProblemKind};

pub(super) async fn page(Path(name): Path<String>) -> PageResult {
    let Some(kind) = ProblemKind::of_name(&name) else {
        return Err(Problem::not_found("there is no problem of this name").into());
    };
    let spec = kind.spec();
    let body = html! {
        h1 { (spec.title) }
        p { (spec.meaning) }
        dl .figures {
            div { dt { "Status" } dd { (spec.status.as_u16()) } }
            div { dt { "Type" } dd { code { (kind.uri()) } } }
        }
        p { a href="/api" { "Description of the API" } }
    };
    Ok(Page {
        max_age_s: STATIC_MAX_AGE_S,
        about: About { is_english: true, ..About::default() },
        ..Page::new(spec.title, body)
    })
}
