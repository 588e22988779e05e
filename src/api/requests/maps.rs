//! Maps now and in all kept weeks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::access::Access;
use crate::api::answer::kinds;
use crate::api::checks;
use crate::api::error::ApiError;
use crate::api::host::Host;
use crate::api::request::{Read, request};
use crate::model::MapKey;
use crate::view::history::{MapTotals, MapView};

kinds! {
    MapView: "map", "MapHistory";
    MapTotals: "map_totals", "MapTotals";
}

/// A map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Map {
    /// Its name.
    pub map: String,
}

request!(Map: "map", Access::Read => MapView);

impl Read for Map {
    fn answer(&self, host: &dyn Host) -> Result<MapView, ApiError> {
        let mut map = host.read(|view| view.model.map(&self.map))??;
        map.weeks = host.weeks_of_map(MapKey(map.map_key))?;
        Ok(map)
    }
}

/// The most played maps; with `text`, those whose name is the string, begins with it or, from three characters on,
/// contains it, in this order, regardless of case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Maps {
    /// A part of a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Most maps.
    pub count: u32,
}

request!(Maps: "maps", Access::Read => Vec<MapTotals>, |request| checks::rows(request.count));

impl Read for Maps {
    fn answer(&self, host: &dyn Host) -> Result<Vec<MapTotals>, ApiError> {
        host.most_played_maps(self.text.as_deref(), self.count as usize)
    }
}
