//! Documents that a FiveM server serves over HTTP.

use serde_json::{Value, json};

use super::datagrams::Datagrams;
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;

/// Replies to a `GET`. The list comes in two chunks, as from a server that does not know its length.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let head = std::str::from_utf8(query).ok()?.strip_suffix("\r\n\r\n")?;
    let path = head.lines().next()?.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
    let snapshot = server.snapshot;
    match path {
        "/dynamic.json" => {
            let document = json!({
                "hostname": snapshot.hostname,
                "gametype": server.game_type(),
                "mapname": snapshot.map,
                "clients": server.announced(),
                "iv": "1",
                "sv_maxclients": snapshot.slots.to_string(),
            });
            let text = document.to_string();
            put(out, &format!("Content-Length: {}\r\n\r\n{text}", text.len()));
            Some(Answer::Other)
        }
        "/players.json" => {
            let entry = |(id, player): (usize, &crate::model::Player)| {
                json!({
                    "endpoint": "127.0.0.1",
                    "id": id + 1,
                    "identifiers": [format!("license:{id:040x}")],
                    "name": player.name,
                    "ping": player.ping.unwrap_or(-1),
                })
            };
            let list: Vec<Value> = snapshot.players.iter().enumerate().map(entry).collect();
            let text = Value::Array(list).to_string();
            let middle = (1..text.len()).find(|&at| at >= text.len() / 2 && text.is_char_boundary(at)).unwrap_or(1);
            let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
            let (first, second) = text.split_at(middle);
            put(out, &format!("Transfer-Encoding: chunked\r\n\r\n{}{}0\r\n\r\n", chunk(first), chunk(second)));
            Some(Answer::Players)
        }
        _ => None,
    }
}

fn put(out: &mut Datagrams, rest: &str) {
    out.bytes.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n");
    out.bytes.extend_from_slice(rest.as_bytes());
    out.end_datagram();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};

    #[test]
    fn documents_equal_handwritten_text() {
        let mut server = snapshot(vec![player("Ann", 0, 40, 0)]);
        server.game = "Freeroam".into();
        let get = |path: &str| {
            let (answer, replies) =
                reply_to(Protocol::FiveM, &server, format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes());
            (answer, String::from_utf8(replies.concat()).unwrap())
        };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n";
        let dynamic = "{\"clients\":1,\"gametype\":\"Freeroam\",\"hostname\":\"Büro\",\"iv\":\"1\",\
            \"mapname\":\"q3dm17\",\"sv_maxclients\":\"16\"}";
        let want = format!("{head}Content-Length: {}\r\n\r\n{dynamic}", dynamic.len());
        assert_eq!(get("/dynamic.json"), (Answer::Other, want));
        let first = "[{\"endpoint\":\"127.0.0.1\",\"id\":1,\"identifiers\":[\"license:00000";
        let second = "00000000000000000000000000000000000\"],\"name\":\"Ann\",\"ping\":40}]";
        let want = format!(
            "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
            first.len(),
            second.len()
        );
        assert_eq!(get("/players.json"), (Answer::Players, want));
        assert!(refuses(Protocol::FiveM, &server, b"GET /players.json HTTP/1.1\r\n"));
        assert!(refuses(Protocol::FiveM, &server, b"GET /client HTTP/1.1\r\n\r\n"));
    }
}
