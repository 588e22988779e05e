//! Schemas of the enums of [`model`](crate::model) that are in answers. The lowest layer knows no schemas.

use strum::VariantNames;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::model::Ranking;
use crate::model::commit::WeekPhase;
use crate::model::server::ScreenReason;

/// One of some names.
fn one_of(description: &str, names: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    let schema = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    schema.enum_values(Some(names)).into()
}

impl PartialSchema for Ranking {
    fn schema() -> RefOr<Schema> {
        one_of("The five rankings, in the order in which they are always listed.", Ranking::ALL.map(Ranking::name))
    }
}

impl ToSchema for Ranking {}

impl PartialSchema for ScreenReason {
    fn schema() -> RefOr<Schema> {
        let names = ScreenReason::ALL.iter().map(|reason| reason.name());
        one_of("Why a list, or a part of it, is not credible.", names)
    }
}

impl ToSchema for ScreenReason {}

impl PartialSchema for WeekPhase {
    fn schema() -> RefOr<Schema> {
        let about = "The phase of a week. `running`: snapshots are still credited. `closing`: it ended, its servers are being \
                     closed one after the other. `ranking`: every server is closed, server ranks are being assigned. \
                     `closed`: final, only a correction changes it. `reopening`: an admin reopened it.";
        one_of(about, WeekPhase::VARIANTS.iter().copied())
    }
}

impl ToSchema for WeekPhase {}
