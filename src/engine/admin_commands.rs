//! Applies the commands of admins that a log has recorded. The daemon calls the same methods for
//! the requests of its clients, and records what changed.

use super::{AdminError, CorrectionError, Engine, Greylisted, ReadError, ReopenError, StoreReader, ViewError};
use crate::model::calendar::{WeekLabelError, parse_week_label};
use crate::model::{AdminCommand, ForgottenPlaceholder};

/// Why a command was not applied. It changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Correction(#[from] CorrectionError),
    #[error(transparent)]
    Reopen(#[from] ReopenError),
    #[error(transparent)]
    Week(#[from] WeekLabelError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl CommandError {
    /// The error of a read of the state, if it is one: the command may be applied in part.
    pub fn into_read_error(self) -> Option<ReadError> {
        match self {
            CommandError::Admin(AdminError::Store(error))
            | CommandError::Correction(CorrectionError::View(ViewError::Store(error)))
            | CommandError::Read(error) => Some(error),
            _ => None,
        }
    }
}

impl Engine {
    /// Applies a command of the time `t_ms`, Unix ms. Returns whether it changed anything.
    ///
    /// Before a correction of a player everything must be committed, and the next action after it is
    /// a commit: see [`is_correction`].
    pub fn apply_command(
        &mut self,
        source: &dyn StoreReader,
        t_ms: i64,
        command: &AdminCommand,
    ) -> Result<bool, CommandError> {
        if !matches!(command, AdminCommand::Clock {}) {
            self.advance_time(t_ms);
        }
        Ok(match command {
            AdminCommand::Add { server, tags, import } => {
                let (key, added) = self.add_server(server.clone(), tags.clone(), t_ms)?;
                self.mark_imported(key, added, *import)
            }
            AdminCommand::Remove { server } => self.remove_server(source, server).map(|_| true)?,
            AdminCommand::Tag { server, add, remove } => self.tag_server(server, add, remove)?,
            AdminCommand::DropTag { tag } => self.delete_tag(tag).map(|_| true)?,
            AdminCommand::Greylist { server, reason } => {
                self.greylist(source, server, Some(reason.clone()))? == Greylisted::Changed
            }
            AdminCommand::Lift { server } => self.greylist(source, server, None)? == Greylisted::Changed,
            AdminCommand::Trust { server, except, revoke } => self.trust_server(server, except, revoke)?,
            AdminCommand::Budget { server, budget } => self.set_scan_budget(server, *budget)?,
            AdminCommand::Merge { game, from, into } => {
                let [from, into] = [from, into].map(|name| self.model.recorded_player(source, game, name));
                self.merge_players(source, game, &from?, &into?).map(|_| true)?
            }
            AdminCommand::Forget { game, player, key, hash } => match ForgottenPlaceholder::parse(player) {
                Some(placeholder) => self.forget_recorded(source, game, placeholder, key.zip(*hash)).map(|()| true)?,
                None => {
                    let player = self.model.recorded_player(source, game, player)?;
                    self.forget_player(source, game, &player, t_ms).map(|_| true)?
                }
            },
            AdminCommand::Allow { hash } => self.allow_name(*hash).map(|()| true)?,
            AdminCommand::Reopen { week } => self.reopen_week(parse_week_label(week)?)?,
            AdminCommand::DeleteWindows { before } => !self.delete_windows_before(source, *before).is_empty(),
            AdminCommand::Clock {} => {
                let previous_ms = self.model.now_ms();
                self.reset_time(source, t_ms)?;
                self.model.now_ms() != previous_ms
            }
        })
    }
}

/// Whether a command needs a commit before it and after it.
pub fn is_correction(command: &AdminCommand) -> bool {
    matches!(
        command,
        AdminCommand::Merge { .. }
            | AdminCommand::Forget { .. }
            | AdminCommand::Allow { .. }
            | AdminCommand::Reopen { .. }
            | AdminCommand::DeleteWindows { .. }
            | AdminCommand::Clock {}
    )
}
