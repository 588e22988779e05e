//! The bytes of a segment's header and of a batch. All numbers are little-endian.
//!
//! | header of a segment | bytes | header of a batch | bytes |
//! |---|---|---|---|
//! | `clqd-log` | 8 | `CLQB` | 4 |
//! | version | 4 | length of the body | 4 |
//! | CRC32C of what follows | 4 | CRC32C of the segment's identifier and of what follows | 4 |
//! | identifier, random | 8 | sequence number | 8 |
//! | sequence number of the first batch | 8 | time of the last event, Unix ms | 8 |
//! | time of creation, Unix ms | 8 | number of events | 4 |
//! | | | body | |
//!
//! The checksum of a batch covers the segment's identifier. So neither a block of a deleted
//! file nor a name that a server chose can look like a batch of this segment.

/// The version of the format. A reader refuses a newer one.
pub const VERSION: u32 = 1;

const SEGMENT_MAGIC: &[u8; 8] = b"clqd-log";
const BATCH_MAGIC: &[u8; 4] = b"CLQB";

pub const SEGMENT_HEADER_BYTES: usize = 40;
pub const BATCH_HEADER_BYTES: usize = 32;

/// Largest body of a batch. While the disk is slow, at most that much waits for it.
pub const BODY_BYTES_MAX: usize = 256 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    pub version: u32,
    pub id: u64,
    pub first_seq: u64,
    pub created_ms: i64,
}

impl SegmentHeader {
    /// The version that this program writes.
    pub const VERSION: u32 = VERSION;

    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        bytes[..8].copy_from_slice(SEGMENT_MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_seq.to_le_bytes());
        bytes[32..].copy_from_slice(&self.created_ms.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[8..12]), &bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None`: it is damaged or cut.
    pub fn decode(bytes: &[u8]) -> Option<SegmentHeader> {
        let bytes: &[u8; SEGMENT_HEADER_BYTES] = bytes.first_chunk()?;
        let header = SegmentHeader {
            version: u32_at(bytes, 8),
            id: u64_at(bytes, 16),
            first_seq: u64_at(bytes, 24),
            created_ms: u64_at(bytes, 32).cast_signed(),
        };
        (header.encode() == *bytes).then_some(header)
    }
}

/// The header of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    pub seq: u64,
    /// Time of the last event, Unix ms.
    pub last_ms: i64,
    /// 0 in the batch that ends a segment: the next segment follows.
    pub events: u32,
}

impl BatchHeader {
    /// Writes the header into the first bytes of `batch`, whose other bytes are the body.
    pub fn seal(&self, id: u64, batch: &mut [u8]) {
        let len = u32::try_from(batch.len() - BATCH_HEADER_BYTES).expect("a batch is below 4 GB");
        batch[..4].copy_from_slice(BATCH_MAGIC);
        batch[4..8].copy_from_slice(&len.to_le_bytes());
        batch[12..20].copy_from_slice(&self.seq.to_le_bytes());
        batch[20..28].copy_from_slice(&self.last_ms.to_le_bytes());
        batch[28..32].copy_from_slice(&self.events.to_le_bytes());
        let crc = checksum(id, batch);
        batch[8..12].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads the batch at the beginning of `bytes`: its header, and the length of all of it.
    /// `None`: there is no valid batch.
    pub fn read(id: u64, bytes: &[u8]) -> Option<(BatchHeader, usize)> {
        let header: &[u8; BATCH_HEADER_BYTES] = bytes.first_chunk()?;
        let len = BATCH_HEADER_BYTES + u32_at(header, 4) as usize;
        let batch = bytes.get(..len)?;
        let is_valid = header.starts_with(BATCH_MAGIC) && u32_at(header, 8) == checksum(id, batch);
        let read = BatchHeader {
            seq: u64_at(header, 12),
            last_ms: u64_at(header, 20).cast_signed(),
            events: u32_at(header, 28),
        };
        is_valid.then_some((read, len))
    }

    /// Finds the first valid batch in `bytes`: its position and header.
    pub fn find(id: u64, bytes: &[u8]) -> Option<(usize, BatchHeader)> {
        memchr::memmem::find_iter(bytes, BATCH_MAGIC)
            .find_map(|at| BatchHeader::read(id, &bytes[at..]).map(|(header, _)| (at, header)))
    }
}

fn checksum(id: u64, batch: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&id.to_le_bytes()), &batch[4..8]);
    crc32c::crc32c_append(crc, &batch[12..])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
