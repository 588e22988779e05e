//! `/api/v1/live`: changes of the home figures, or of one server, as server-sent events.
//!
//! A task checks for changes every two seconds, once for all streams of one server, and each stream sends the
//! changed state.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{IntoParams, PartialSchema, ToSchema};

use super::responses::{NotFound, Problems, Removed};
use super::rows::{OverviewRow, ServerDetailRow};
use super::site::overview_content;
use crate::api::{Read, json, requests};
use crate::view::{Overview, PublicServerDetail, ServerDetail};
use crate::web::client_address::Client;
use crate::web::context::WebContext;
use crate::web::live_streams::{LiveEvent, StreamPlace};
use crate::web::problem::Problem;
use crate::web::query;
use crate::web::schemas::without;

/// `EventSource` sends the id of the last event when it reconnects.
const LAST_EVENT_ID: &str = "last-event-id";

/// How often a task looks for changes.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Fields of a server that are not sent: they are large and rarely change.
const FIELDS_LEFT_OUT: [&str; 4] = ["series", "maps", "maps_seen", "settings"];

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Parameters {
    /// The URL of a server; without it, events are about the whole site.
    #[param(value_type = Option<query::Url>, inline)]
    server: Option<String>,
}

/// The data of an event: `overview` without a server, `server` with one.
#[derive(ToSchema)]
#[schema(as = LiveEvent, discriminator(property_name = "kind", mapping(
    ("overview" = "#/components/schemas/Overview"),
    ("server_detail" = "#/components/schemas/LiveServer"),
)))]
#[serde(untagged)]
#[expect(dead_code, reason = "events are sent as text")]
enum LiveEventData<'a> {
    Overview(OverviewRow<'a>),
    Server(LiveServer),
}

/// A server as in events.
struct LiveServer;

impl PartialSchema for LiveServer {
    fn schema() -> RefOr<Schema> {
        without(ServerDetailRow::schema(), &FIELDS_LEFT_OUT)
    }
}

impl ToSchema for LiveServer {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ServerDetailRow::schemas(schemas);
    }
}

/// One client's stream.
struct Live {
    events: watch::Receiver<Arc<LiveEvent>>,
    _place: StreamPlace,
}

/// Streams changes of the site or of a server
///
/// Server-sent events; the schema is that of the data of one event. The first event is the present
/// state, unless its `id` is the `Last-Event-ID` of the request. A further event follows when the state has changed, at most
/// every 2 s. A client may have
/// four streams. Like every connection, it ends after 120 s; `EventSource` reconnects
/// automatically.
#[utoipa::path(get, path = "/api/v1/live", operation_id = "watch_live", tag = "site", params(Parameters),
    responses(
        (status = 200, description = "Events.", body = LiveEventData, content_type = "text/event-stream"), Problems, NotFound, Removed))]
pub(super) async fn live(
    State(context): State<Arc<WebContext>>,
    Extension(Client(client)): Extension<Client>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let Parameters { server } = query::parse(&uri)?;
    let place = context.live_streams.open(client)?;
    let mut events = match server {
        Some(url) => subscribe(context, requests::ServersShow { url: query::server_url(&url)? }).await?,
        None => subscribe(context, requests::Overview {}).await?,
    };
    // A client that reconnects has already received the current state, unless it has changed since.
    if headers.get(LAST_EVENT_ID).is_none_or(|seen| *seen != *events.borrow_and_update().id()) {
        events.mark_changed();
    }
    let live = Live { events, _place: place };
    let events = stream::unfold(live, |mut live| async move {
        // The feed outlives its streams.
        live.events.changed().await.ok()?;
        let event = live.events.borrow_and_update().clone();
        let sent = Event::default().event(event.name).id(event.id()).data(&event.data);
        Some((Ok::<Event, Infallible>(sent), live))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

/// What clients watch.
trait Watched: Read<Answer: Sync> {
    fn event(answer: &Self::Answer) -> LiveEvent;
}

impl Watched for requests::Overview {
    fn event(overview: &Overview) -> LiveEvent {
        LiveEvent {
            name: "overview",
            data: json::to_string(&OverviewRow::from(overview)),
            content: json::to_string(&overview_content(overview)),
        }
    }
}

impl Watched for requests::ServersShow {
    fn event(detail: &ServerDetail) -> LiveEvent {
        LiveEvent {
            name: "server",
            data: without_large_fields(&detail.public),
            content: without_large_fields(&detail.public.content()),
        }
    }
}

/// The events of a request, from the present one on.
async fn subscribe<R: Watched>(
    context: Arc<WebContext>,
    request: R,
) -> Result<watch::Receiver<Arc<LiveEvent>>, Problem> {
    // An unknown server is an error, not an empty stream.
    let first = R::event(&*context.ask_shared(&request).await?);
    let subject = format!("{} {}", R::NAME, json::to_string(&request));
    let begin = || _ = tokio::spawn(watch_changes(context.clone(), request, subject.clone()));
    Ok(context.live_feeds.subscribe(&subject, first, begin))
}

/// Looks for changes while there are streams.
async fn watch_changes<R: Watched>(context: Arc<WebContext>, request: R, subject: String) {
    let mut ticks = interval(LOOK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while context.live_feeds.is_watched(&subject) {
        ticks.tick().await;
        // No event is sent for a removed server, or while the engine is busy.
        if let Ok(answer) = context.ask_shared(&request).await {
            context.live_feeds.update(&subject, R::event(&*answer));
        }
    }
}

fn without_large_fields(detail: &PublicServerDetail) -> String {
    let mut value = serde_json::to_value(ServerDetailRow::from(detail)).expect("plain data");
    if let Some(fields) = value.as_object_mut() {
        FIELDS_LEFT_OUT.iter().for_each(|field| _ = fields.remove(*field));
    }
    json::to_string(&value)
}
