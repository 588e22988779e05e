//! The client side of HTTP/1.1 for requests whose answer is a small document: one `GET` after the other on one
//! connection.

use super::exchange::IgnoreReason;
use super::stream::Stream;
use crate::limits::REPLY_BYTES_MAX;

/// Longest head of a response, bytes. Until a head is complete, each piece of it is parsed again.
const HEAD_BYTES_MAX: usize = 8 * 1_024;

/// Most header fields of a response.
const FIELDS_MAX: usize = 64;

/// Longest line with the size of a chunk, bytes.
const CHUNK_LINE_BYTES_MAX: usize = 256;

/// A request for a document of the server.
pub(super) fn get(host: &str, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\nUser-Agent: clqd\r\n\r\n").into_bytes()
}

/// A response that is being received.
#[derive(Clone, Debug, Default)]
pub(super) struct Response {
    stream: Stream,
    part: Part,
    body: Vec<u8>,
    /// Bytes received since the response before.
    received: usize,
    is_last: bool,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    /// This many bytes of the body, and the end.
    Body(usize),
    ChunkSize,
    /// This many bytes of a chunk.
    Chunk(usize),
    /// The end of the line after a chunk.
    ChunkEnd,
    /// Lines to an empty one.
    Trailer,
    /// The body ends with the connection.
    UntilEnd,
}

impl Response {
    /// Adds bytes. Returns the body when the response is complete; what follows is the next response.
    ///
    /// Errors: no response, one with another status than 200, or one that is too large. The rest of the
    /// connection is not usable.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, IgnoreReason> {
        self.received += bytes.len();
        // Lines of chunks and after them are not in the body.
        if self.received > 2 * REPLY_BYTES_MAX {
            return Err(IgnoreReason::TooLarge);
        }
        self.stream.push(bytes)?;
        self.advance()
    }

    /// Whether the server will end the connection after the last response that it began.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Whether nothing of the next response was received.
    pub fn is_between(&self) -> bool {
        self.part == Part::Head && self.stream.rest().is_empty()
    }

    /// Reads on in what was received.
    pub fn advance(&mut self) -> Result<Option<Vec<u8>>, IgnoreReason> {
        loop {
            let rest = self.stream.rest();
            let (next, used) = match self.part {
                Part::Head => match parse_head(rest)? {
                    Some((part, length, is_last)) => {
                        self.is_last = is_last;
                        (part, length)
                    }
                    None => return Ok(None),
                },
                Part::Body(0) => return Ok(Some(self.take_body())),
                Part::Body(left) | Part::Chunk(left) if rest.is_empty() && left > 0 => return Ok(None),
                Part::Body(left) => (Part::Body(left - left.min(rest.len())), self.add(left)?),
                Part::UntilEnd => (Part::UntilEnd, self.add(rest.len())?),
                Part::ChunkSize => match chunk_size(rest)? {
                    Some((0, used)) => (Part::Trailer, used),
                    Some((size, used)) => (Part::Chunk(size), used),
                    None => return Ok(None),
                },
                Part::Chunk(0) => (Part::ChunkEnd, 0),
                Part::Chunk(left) => (Part::Chunk(left - left.min(rest.len())), self.add(left)?),
                Part::ChunkEnd | Part::Trailer => match line(rest)? {
                    Some(0) if self.part == Part::Trailer => (Part::Body(0), 2),
                    Some(0) => (Part::ChunkSize, 2),
                    Some(length) if self.part == Part::Trailer => (Part::Trailer, length + 2),
                    Some(_) => return Err(IgnoreReason::Malformed),
                    None => return Ok(None),
                },
            };
            self.stream.consume(used);
            if next == Part::UntilEnd && self.stream.rest().is_empty() {
                self.part = next;
                return Ok(None);
            }
            self.part = next;
        }
    }

    /// The connection has ended: the body, if it ends so.
    pub fn end(&mut self) -> Option<Vec<u8>> {
        self.is_last = false;
        (self.part == Part::UntilEnd).then(|| self.take_body())
    }

    /// Adds up to `count` bytes to the body. Returns how many.
    fn add(&mut self, count: usize) -> Result<usize, IgnoreReason> {
        let rest = self.stream.rest();
        let bytes = &rest[..count.min(rest.len())];
        if self.body.len() + bytes.len() > REPLY_BYTES_MAX {
            return Err(IgnoreReason::TooLarge);
        }
        self.body.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn take_body(&mut self) -> Vec<u8> {
        self.part = Part::Head;
        self.received = 0;
        std::mem::take(&mut self.body)
    }
}

/// What follows a head, the length of the head, and whether the connection ends after the response. `None`: it is not
/// complete.
fn parse_head(bytes: &[u8]) -> Result<Option<(Part, usize, bool)>, IgnoreReason> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(&bytes[..bytes.len().min(HEAD_BYTES_MAX)]) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) => return Err(IgnoreReason::TooLarge),
        Err(_) => return Err(IgnoreReason::NotAReply),
    };
    if response.code != Some(200) {
        return Err(IgnoreReason::UnexpectedMessage);
    }
    let value = |name: &str| {
        response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    };
    let is = |name: &str, want: &[u8]| value(name).is_some_and(|text| text.eq_ignore_ascii_case(want));
    let is_last = is("connection", b"close") || (response.version == Some(0) && !is("connection", b"keep-alive"));
    let is_chunked = is("transfer-encoding", b"chunked");
    let part = match value("content-length") {
        _ if is_chunked => Part::ChunkSize,
        Some(text) => match super::fields::number::<usize>(text) {
            Some(length) if length <= REPLY_BYTES_MAX => Part::Body(length),
            Some(_) => return Err(IgnoreReason::TooLarge),
            None => return Err(IgnoreReason::Malformed),
        },
        None => Part::UntilEnd,
    };
    Ok(Some((part, length, is_last)))
}

/// The size of a chunk, and the length of its line. `None`: the line is not complete.
fn chunk_size(bytes: &[u8]) -> Result<Option<(usize, usize)>, IgnoreReason> {
    match httparse::parse_chunk_size(&bytes[..bytes.len().min(CHUNK_LINE_BYTES_MAX)]) {
        Ok(httparse::Status::Complete((used, size))) => match usize::try_from(size) {
            Ok(size) if size <= REPLY_BYTES_MAX => Ok(Some((size, used))),
            _ => Err(IgnoreReason::TooLarge),
        },
        Ok(httparse::Status::Partial) if bytes.len() < CHUNK_LINE_BYTES_MAX => Ok(None),
        _ => Err(IgnoreReason::Malformed),
    }
}

/// The length of a line without its end. `None`: it is not complete.
fn line(bytes: &[u8]) -> Result<Option<usize>, IgnoreReason> {
    let start = &bytes[..bytes.len().min(CHUNK_LINE_BYTES_MAX)];
    match memchr::memmem::find(start, b"\r\n") {
        Some(length) => Ok(Some(length)),
        None if start.len() < CHUNK_LINE_BYTES_MAX => Ok(None),
        None => Err(IgnoreReason::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(text: &str, piece: usize) -> Result<(Option<Vec<u8>>, Response), IgnoreReason> {
        let mut response = Response::default();
        let mut body = None;
        for piece in text.as_bytes().chunks(piece) {
            assert_eq!(body, None, "bytes after the response");
            body = response.push(piece)?;
        }
        Ok((body, response))
    }

    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

    #[test]
    fn body_ends_by_its_length_by_chunks_or_by_the_connection() {
        for piece in [1, 2, 7, 1_000] {
            let (body, _) = receive(&format!("{HEAD}Content-Length: 5\r\n\r\nhello"), piece).unwrap();
            assert_eq!(body.as_deref(), Some(&b"hello"[..]), "{piece}");
            let chunks = "Transfer-Encoding: chunked\r\n\r\n3;x=1\r\nhel\r\n2\r\nlo\r\n0\r\nField: 1\r\n\r\n";
            let (body, _) = receive(&format!("{HEAD}{chunks}"), piece).unwrap();
            assert_eq!(body.as_deref(), Some(&b"hello"[..]), "{piece}");
            let (body, _) = receive(&format!("{HEAD}content-length: 0\r\n\r\n"), piece).unwrap();
            assert_eq!(body.as_deref(), Some(&b""[..]), "{piece}");
            let (body, mut response) = receive(&format!("{HEAD}\r\nhello"), piece).unwrap();
            assert_eq!((body, response.end().as_deref()), (None, Some(&b"hello"[..])), "{piece}");
            let (body, mut response) = receive(&format!("{HEAD}Content-Length: 6\r\n\r\nhello"), piece).unwrap();
            assert_eq!((body, response.end()), (None, None), "{piece}");
        }
    }

    #[test]
    fn next_response_may_have_arrived_already() {
        let both = format!("{HEAD}Content-Length: 1\r\n\r\n1{HEAD}Content-Length: 1\r\n\r\n2");
        let mut response = Response::default();
        assert_eq!(response.push(both.as_bytes()).unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(response.advance().unwrap().as_deref(), Some(&b"2"[..]));
        assert_eq!(response.advance(), Ok(None));
    }

    #[test]
    fn responses_that_are_not_usable_are_refused() {
        let long = "x".repeat(HEAD_BYTES_MAX);
        for (text, reason) in [
            ("SSH-2.0-server\r\n".to_owned(), IgnoreReason::NotAReply),
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(), IgnoreReason::UnexpectedMessage),
            (format!("{HEAD}Field: {long}"), IgnoreReason::TooLarge),
            (format!("{HEAD}Content-Length: 99999999\r\n\r\n"), IgnoreReason::TooLarge),
            (format!("{HEAD}Content-Length: -1\r\n\r\n"), IgnoreReason::Malformed),
            (format!("{HEAD}Transfer-Encoding: chunked\r\n\r\nfffffff\r\n"), IgnoreReason::TooLarge),
            (format!("{HEAD}Transfer-Encoding: chunked\r\n\r\nxyz\r\n"), IgnoreReason::Malformed),
            (format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n"), IgnoreReason::Malformed),
        ] {
            assert_eq!(receive(&text, 1_000).unwrap_err(), reason, "{text:.80}");
        }
        let mut response = Response::default();
        response.push(format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n").as_bytes()).unwrap();
        let endless = (0..).find_map(|_| response.push("Field: value\r\n".repeat(1_000).as_bytes()).err());
        assert_eq!(endless, Some(IgnoreReason::TooLarge));
        let mut response = Response::default();
        response.push(format!("{HEAD}\r\n").as_bytes()).unwrap();
        let block = vec![b'x'; REPLY_BYTES_MAX / 2];
        assert_eq!((response.push(&block), response.push(&block)), (Ok(None), Ok(None)));
        assert_eq!(response.push(b"x"), Err(IgnoreReason::TooLarge));
    }
}
