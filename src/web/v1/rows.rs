//! Rows with their kind. An answer has rows of certain kinds only, so its description names their
//! types instead of those of all kinds.

use std::borrow::Cow;

use serde::Serialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::model::view::board::{BoardEntryView, BoardHead, WindowSummary};
use crate::model::view::history::{BestPlayers, MapTotals, MapView};
use crate::model::view::{OnlineSeriesView, Overview, PlayerNameView, PlayerView};
use crate::web::visitor::{VisitorDetail, VisitorServer, VisitorStatus};

/// A type of rows.
pub(super) trait Kind {
    /// As of [`crate::api::Kind`].
    const KIND: &'static str;
    /// The type in the description, with its kind.
    const NAME: &'static str;
    type Row: ToSchema;
}

/// A row with its kind.
#[derive(Debug, Serialize)]
pub(super) struct Tagged<T> {
    kind: &'static str,
    #[serde(flatten)]
    row: T,
}

impl<T: Kind> From<T> for Tagged<T> {
    fn from(row: T) -> Tagged<T> {
        Tagged { kind: T::KIND, row }
    }
}

impl<T: Kind> PartialSchema for Tagged<T> {
    fn schema() -> RefOr<Schema> {
        let kind = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some([T::KIND]))
            .description(Some("The kind of the row."));
        let tag = ObjectBuilder::new().property("kind", kind);
        AllOfBuilder::new().item(tag).item(T::Row::schema()).into()
    }
}

impl<T: Kind> ToSchema for Tagged<T> {
    fn name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        T::Row::schemas(schemas);
    }
}

impl<T: Kind> Kind for &T {
    const KIND: &'static str = T::KIND;
    const NAME: &'static str = T::NAME;
    type Row = T::Row;
}

macro_rules! kinds {
    ($($row:ty: $kind:literal, $name:literal;)*) => { $(
        impl Kind for $row {
            const KIND: &'static str = $kind;
            const NAME: &'static str = $name;
            type Row = Self;
        }
    )* };
}

kinds! {
    VisitorStatus<'_>: "status", "Status";
    VisitorServer<'_>: "server", "Server";
    VisitorDetail<'_>: "server_detail", "ServerDetail";
    Overview: "overview", "Overview";
    OnlineSeriesView: "series", "OnlineSeries";
    BoardHead: "board_head", "BoardHead";
    BoardEntryView: "entry", "BoardEntry";
    WindowSummary: "window", "BoardWindow";
    PlayerView: "player", "Player";
    PlayerNameView: "player_name", "PlayerName";
    MapView: "map", "MapHistory";
    MapTotals: "map_totals", "MapTotals";
    BestPlayers: "best_players", "BestPlayers";
}

pub(super) type StatusRow<'a> = Tagged<VisitorStatus<'a>>;
pub(super) type ServerRow<'a> = Tagged<VisitorServer<'a>>;
pub(super) type ServerDetailRow<'a> = Tagged<VisitorDetail<'a>>;
pub(super) type OverviewRow<'a> = Tagged<&'a Overview>;
pub(super) type SeriesRow<'a> = Tagged<&'a OnlineSeriesView>;
pub(super) type BoardHeadRow<'a> = Tagged<&'a BoardHead>;
pub(super) type EntryRow<'a> = Tagged<&'a BoardEntryView>;
pub(super) type WindowRow<'a> = Tagged<&'a WindowSummary>;
pub(super) type TaggedPlayer<'a> = Tagged<&'a PlayerView>;
pub(super) type PlayerNameRow<'a> = Tagged<&'a PlayerNameView>;
pub(super) type TaggedMap<'a> = Tagged<&'a MapView>;
pub(super) type MapTotalsRow<'a> = Tagged<&'a MapTotals>;
pub(super) type BestPlayersRow<'a> = Tagged<&'a BestPlayers>;
