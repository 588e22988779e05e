//! The HTTP server, with two doors: a port for visitors, which only reads (docs/web.md), and the control socket
//! for admins (docs/commands.md).
//!
//! It sends requests of [`crate::api`] to the daemon and returns their
//! rows; it computes nothing itself. Visitors are not trusted: they see the public part of each
//! answer, and [`limits`] bounds every resource that they can use.
//!
//! - [`listener`]: both doors, and the timeouts of their connections; [`door`]: what they have in common;
//!   [`connections`]: the number of their connections.
//! - [`admin`]: the control socket, and the requests of admins; [`tokens`]: who may send them over the port, with
//!   [`tls`].
//! - [`router`]: the routes, and the checks that every request passes.
//! - [`context`]: what all requests share; sends requests to the [`Backend`].
//! - [`identity`]: whose site it is.
//! - [`client_address`]: the client of a request; [`client_limit`]: the request rate of each client;
//!   [`live_streams`]: the streams of each client.
//! - [`health`], [`metrics`]: for operators.
//! - [`pages`]: the website. - [`banners`]: images for forums. - [`v1`]: the JSON API.
//! - [`texts`]: the texts of the website in each language.
//! - [`query`] reads the parameters of both, [`segment`] names in their paths, [`answer`] writes their
//!   answers, [`problem`] their errors; [`answer_cache`] computes each answer once for all who wait for
//!   it; [`accept_encoding`] says whether a client gets it compressed.

mod accept_encoding;
mod admin;
mod answer;
mod answer_cache;
mod banners;
mod client_address;
mod client_limit;
mod connections;
mod context;
mod door;
mod health;
pub mod identity;
pub mod limits;
mod listener;
mod live_streams;
mod metrics;
mod pages;
mod problem;
mod public_url;
mod query;
mod router;
mod schemas;
mod segment;
mod texts;
mod tls;
mod tokens;
mod v1;

use std::net::SocketAddr;
use std::sync::Arc;

use cidr::IpCidr;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

pub use self::admin::{AdminSocket, Disconnected, LineSender, Lines, SocketError};
pub use self::connections::ConnectionCounters;
pub use self::identity::{Identity, Logo, SiteLink};
pub use self::limits::WebLimits;
pub use self::listener::{Server, Site, WebError, WebPort};
pub use self::pages::names::{plain_game, plain_hostname};
pub use self::pages::{game_path, server_path, tag_path};
pub use self::public_url::{BadPublicUrl, PublicUrl};
pub use self::tls::{TlsError, TlsFiles};
pub use self::tokens::{Token, TokenHash, new_token};
use crate::api::{ApiError, ErrorCode, Host, Read, checked};
use crate::view::board::BoardsSelector;

/// Settings of the web interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSettings {
    /// Port 0 is any free port; `None`: there is no website.
    pub listen: Option<SocketAddr>,
    /// The certificate is set later.
    pub has_tls: bool,
    /// Requests of one client: see [`client_limit`].
    pub client_requests_per_second_max: u32,
    pub client_burst_requests: u32,
    /// Peers whose `X-Forwarded-For` is used: see [`client_address`].
    pub proxies: Vec<IpCidr>,
    /// The address of the site for its visitors; `None`: that of `listen`.
    pub public_url: Option<PublicUrl>,
    /// The logo is read later.
    pub identity: Identity,
    /// Since when a server is known that is on the first page.
    pub front_page_days_min: u32,
}

/// What computes the answer to a read.
pub type ReadWork = Box<dyn FnOnce(&dyn Host) + Send>;

/// The work on a request of an admin: it sends lines, and returns notes. Dropping the future ends it.
pub type AdminWork = Box<dyn FnOnce(LineSender) -> BoxFuture<'static, Result<Vec<String>, ApiError>> + Send>;

/// The daemon, as the web interface sees it.
pub trait Backend: Send + Sync + 'static {
    /// Calls `read` on a thread where it may wait for the disk; with boards that are not in memory, on the engine thread
    /// when they are. Dropping the future withdraws it.
    fn read(
        self: Arc<Self>,
        boards: Option<BoardsSelector>,
        read: ReadWork,
    ) -> BoxFuture<'static, Result<(), ApiError>>;

    /// The work on a request with this name and body. Error: it is not valid.
    fn prepare(self: Arc<Self>, name: &'static str, body: &[u8]) -> Result<AdminWork, ApiError>;

    /// How old the state of a follower may be, ms; `None`: this engine is the only one, or leads.
    fn behind_ms(&self) -> Option<u64> {
        None
    }

    /// A number that grows with every change by an admin. Answers with a smaller number are not
    /// used any more.
    fn changes(&self) -> u64;
}

impl dyn Backend {
    /// The answer to a request that only reads. Dropping the future withdraws it.
    pub async fn answer<R: Read>(self: Arc<Self>, request: R) -> Result<R::Answer, ApiError> {
        self.answer_holding(request, ()).await
    }

    /// As [`Backend::answer`]. `place` is dropped when no thread works on the request any more: dropping the future does
    /// not end work that has begun.
    async fn answer_holding<R: Read>(
        self: Arc<Self>,
        request: R,
        place: impl Send + 'static,
    ) -> Result<R::Answer, ApiError> {
        checked(&request)?;
        let boards = request.boards();
        let (reply, answer) = oneshot::channel();
        let read: ReadWork = Box::new(move |host| {
            _ = reply.send(request.answer(host));
            drop(place);
        });
        self.read(boards, read).await?;
        answer.await.map_err(|_| ApiError::new(ErrorCode::Stopping, "the daemon is stopping"))?
    }
}

#[cfg(test)]
mod tests;
