//! Writes recorded events as a log, or as its end, while no daemon does.

use super::error::LogError;
use super::writer::{Batch, BatchBuilder, LogWriter, WriterSettings};
use super::{LogEvent, RecordedSettings};

/// A batch ends at this size.
const BATCH_BYTES: usize = 1 << 20;

/// Its segments have the times of the events.
#[derive(Debug)]
pub struct HistoryWriter {
    writer: LogWriter,
    builder: BatchBuilder,
    settings: RecordedSettings,
    last_ms: i64,
}

impl HistoryWriter {
    /// The log ends before `first_seq`, or has nothing and begins with it. `first_ms`: the time of the first event,
    /// Unix ms.
    pub fn open(settings: &WriterSettings, first_seq: u64, first_ms: i64) -> Result<HistoryWriter, LogError> {
        let (writer, builder, _) = LogWriter::open(settings, first_seq, first_ms)?;
        Ok(HistoryWriter { writer, builder, settings: RecordedSettings::default(), last_ms: first_ms })
    }

    pub fn append(&mut self, event: &LogEvent) -> Result<(), LogError> {
        self.last_ms = event.t_ms();
        match event {
            LogEvent::Settings { settings, .. } => self.settings.update(settings.clone()),
            _ if self.builder.is_at_segment_start() && !self.settings.is_empty() => {
                self.builder.append(&LogEvent::Settings { t_ms: self.last_ms, settings: self.settings.clone() });
            }
            _ => {}
        }
        self.builder.append(event);
        if self.builder.bytes() >= BATCH_BYTES {
            let batch = self.builder.take(self.last_ms);
            self.write(batch)?;
        }
        Ok(())
    }

    /// Returns the last batch. The log is on disk.
    pub fn finish(mut self) -> Result<u64, LogError> {
        let batch = self.builder.take(self.last_ms);
        self.write(batch)?;
        Ok(self.builder.last_seq())
    }

    fn write(&mut self, batch: Option<Batch>) -> Result<(), LogError> {
        batch.map_or(Ok(()), |batch| self.writer.write(batch, self.last_ms))
    }
}
