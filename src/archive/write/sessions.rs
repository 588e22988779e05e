//! Writes complete sessions.

use super::TransactionError;
use super::tables::PLAYER_SESSION;
use crate::archive::connect::Archive;
use crate::model::{Session, SessionKey};

impl Archive {
    pub(super) async fn upsert_sessions(
        &mut self,
        sessions: &[(SessionKey, Session)],
    ) -> Result<u64, TransactionError> {
        let mut upsert = self.upsert(&PLAYER_SESSION);
        for (SessionKey { end_ms, server, player, origin, .. }, session) in sessions {
            upsert.row(|row| {
                row.uint(server.0).int(*end_ms).uint(player.0).uint(origin.0);
                row.int(session.start_ms).opt_int(session.points).uint(session.map.0).uint(session.seen);
            });
        }
        self.execute_upsert(upsert).await
    }
}
