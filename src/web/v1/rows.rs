//! The rows of the visitors' API.

use crate::api::{PublicStatus, Tagged};
use crate::view::board::{BoardEntryView, BoardHead, WindowSummary};
use crate::view::history::{BestPlayers, MapTotals, MapView};
use crate::view::session::SessionView;
use crate::view::{OnlineSeriesView, Overview, PlayerNameView, PlayerView, PublicServer, PublicServerDetail};

pub(super) type StatusRow<'a> = Tagged<'a, PublicStatus<'a>>;
pub(super) type ServerRow<'a> = Tagged<'a, PublicServer>;
pub(super) type ServerDetailRow<'a> = Tagged<'a, PublicServerDetail>;
pub(super) type OverviewRow<'a> = Tagged<'a, Overview>;
pub(super) type SeriesRow<'a> = Tagged<'a, OnlineSeriesView>;
pub(super) type BoardHeadRow<'a> = Tagged<'a, BoardHead>;
pub(super) type EntryRow<'a> = Tagged<'a, BoardEntryView>;
pub(super) type WindowRow<'a> = Tagged<'a, WindowSummary>;
pub(super) type TaggedPlayer<'a> = Tagged<'a, PlayerView>;
pub(super) type PlayerNameRow<'a> = Tagged<'a, PlayerNameView>;
pub(super) type SessionRow<'a> = Tagged<'a, SessionView>;
pub(super) type TaggedMap<'a> = Tagged<'a, MapView>;
pub(super) type MapTotalsRow<'a> = Tagged<'a, MapTotals>;
pub(super) type BestPlayersRow<'a> = Tagged<'a, BestPlayers>;
