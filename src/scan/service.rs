//! SRV records (RFC 2782): on which host and port a service is. Each name server of the system is asked over UDP.

#![expect(clippy::disallowed_types, reason = "its datagrams are for name servers, not for game servers")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use simple_dns::rdata::{RData, SRV};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// How long a name server has for its reply, and how often each is asked.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 2;

/// Name servers that are asked, at most: as many as the system uses.
const NAME_SERVERS_MAX: usize = 3;

/// A larger reply would come over TCP: nobody has so many servers.
const REPLY_BYTES_MAX: usize = 512;

/// Where a service is, as its SRV record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub host: String,
    pub port: u16,
}

/// The name servers of the system.
pub fn name_servers() -> Vec<SocketAddr> {
    let file = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    servers_in(&file)
}

fn servers_in(file: &str) -> Vec<SocketAddr> {
    let values = file.lines().filter_map(|line| line.trim().strip_prefix("nameserver")?.split_whitespace().next());
    let ips = values.filter_map(|value| value.parse::<IpAddr>().ok());
    let mut servers: Vec<SocketAddr> = ips.take(NAME_SERVERS_MAX).map(|ip| SocketAddr::new(ip, 53)).collect();
    if servers.is_empty() {
        // As the system has it.
        servers.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 53));
    }
    servers
}

/// The SRV record of a service such as `_minecraft._tcp.play.example.org`; `None`: it has none. An error: no name server has
/// answered.
pub async fn look_up(name: &str, servers: &[SocketAddr]) -> Result<Option<Service>, ()> {
    for server in servers.iter().cycle().take(ATTEMPTS * servers.len()) {
        if let Ok(Ok(Some(answer))) = timeout(REPLY_TIMEOUT, ask(name, *server)).await {
            return Ok(answer);
        }
    }
    Err(())
}

/// The answer of a name server. `None`: it cannot say.
async fn ask(name: &str, server: SocketAddr) -> std::io::Result<Option<Option<Service>>> {
    let Some((id, question)) = question(name) else { return Ok(Some(None)) };
    let socket = UdpSocket::bind(if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).await?;
    socket.connect(server).await?;
    socket.send(&question).await?;
    let mut reply = vec![0; REPLY_BYTES_MAX];
    loop {
        let length = socket.recv(&mut reply).await?;
        // What is not an answer to this question may be of anybody: the name server is waited for.
        if let Some(answer) = read(id, name, &reply[..length]) {
            return Ok(answer);
        }
    }
}

/// The number and bytes of a question. `None`: the name cannot be asked for.
fn question(name: &str) -> Option<(u16, Vec<u8>)> {
    let id = u16::try_from(getrandom::u32().ok()? >> 16).ok()?;
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    packet.questions.push(Question::new(
        Name::new(name).ok()?,
        QTYPE::TYPE(TYPE::SRV),
        QCLASS::CLASS(CLASS::IN),
        false,
    ));
    Some((id, packet.build_bytes_vec().ok()?))
}

/// What a reply says; `None`: it is no reply to this question. `Some(None)`: the name server cannot say.
fn read(id: u16, name: &str, reply: &[u8]) -> Option<Option<Option<Service>>> {
    let name = Name::new(name).ok()?;
    let reply = reply.starts_with(&id.to_be_bytes()).then(|| Packet::parse(reply).ok())??;
    if !reply.has_flags(PacketFlag::RESPONSE) || !reply.questions.iter().all(|question| question.qname == name) {
        return None;
    }
    let records = reply.answers.iter().filter_map(|answer| match &answer.rdata {
        RData::SRV(record) => Some(record),
        _ => None,
    });
    // Of a part of the records another one may be the best.
    let is_whole = !reply.has_flags(PacketFlag::TRUNCATION);
    Some(match reply.rcode() {
        _ if !is_whole => None,
        RCODE::NoError | RCODE::NameError => Some(best(records)),
        _ => None,
    })
}

/// The record with the lowest priority; of several the one with the largest weight, so that a server is the same in each scan.
fn best<'a>(records: impl Iterator<Item = &'a SRV<'a>>) -> Option<Service> {
    let services =
        records.map(|record| (record.priority, u16::MAX - record.weight, record.target.to_string(), record.port));
    let (_, _, host, port) = services.min()?;
    // The root: the service is nowhere.
    let is_host = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    (is_host && port > 0).then_some(Service { host, port })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use simple_dns::ResourceRecord;

    use super::*;

    const NAME: &str = "_minecraft._tcp.play.example.org";

    /// Priority, weight, port, host.
    type Record = (u16, u16, u16, &'static str);

    fn reply(question: &[u8], rcode: RCODE, records: &[Record]) -> Vec<u8> {
        let mut packet = Packet::parse(question).unwrap().into_reply();
        *packet.rcode_mut() = rcode;
        for &(priority, weight, port, host) in records {
            let record = RData::SRV(SRV { priority, weight, port, target: Name::new_unchecked(host) });
            packet.answers.push(ResourceRecord::new(Name::new_unchecked(NAME), CLASS::IN, 60, record));
        }
        packet.build_bytes_vec_compressed().unwrap()
    }

    /// A name server on loopback that answers each question with the datagrams of `answers`.
    async fn name_server(answers: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> SocketAddr {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                for answer in answers(&question[..length]) {
                    socket.send_to(&answer, from).await.unwrap();
                }
            }
        });
        address
    }

    fn service(host: &str, port: u16) -> Option<Service> {
        Some(Service { host: host.to_owned(), port })
    }

    #[tokio::test]
    async fn first_record_by_priority_and_weight_counts() {
        let records = [(5, 0, 1, "c.test"), (1, 2, 2, "b.test"), (1, 9, 25577, "a.test"), (1, 9, 3, "z.test")];
        let server = name_server(move |question| {
            let mut other = reply(question, RCODE::NoError, &[(0, 0, 9, "forged.test")]);
            other[0] ^= 1;
            vec![b"garbage".to_vec(), other, reply(question, RCODE::NoError, &records)]
        });
        assert_eq!(look_up(NAME, &[server.await]).await, Ok(service("a.test", 25577)));
    }

    #[tokio::test]
    async fn host_without_a_record_has_none() {
        let answers: [(RCODE, &'static [Record]); 4] = [
            (RCODE::NameError, &[]),
            (RCODE::NoError, &[]),
            (RCODE::NoError, &[(0, 0, 25565, "")]),
            (RCODE::NoError, &[(0, 0, 25565, "a b.test")]),
        ];
        for (rcode, records) in answers {
            let server = name_server(move |question| vec![reply(question, rcode, records)]).await;
            assert_eq!(look_up(NAME, &[server]).await, Ok(None), "{records:?}");
        }
    }

    #[tokio::test]
    async fn next_name_server_is_asked() {
        let broken = name_server(|question| vec![reply(question, RCODE::ServerFailure, &[])]).await;
        let good = name_server(|question| vec![reply(question, RCODE::NoError, &[(0, 0, 7, "a.test")])]).await;
        assert_eq!(look_up(NAME, &[broken, good]).await, Ok(service("a.test", 7)));
        assert_eq!(look_up(NAME, &[broken]).await, Err(()));
        let truncated = name_server(|question| {
            let mut reply = reply(question, RCODE::NoError, &[]);
            reply[2] |= 0x02;
            vec![reply]
        });
        assert_eq!(look_up(NAME, &[truncated.await]).await, Err(()));
    }

    #[test]
    fn name_servers_are_those_of_the_file() {
        let file =
            "# nameserver 1.1.1.1\noptions edns0\nnameserver 127.0.0.53\n nameserver  2001:db8::1 # x\nnameserver x\n";
        assert_eq!(servers_in(file), ["127.0.0.53:53", "[2001:db8::1]:53"].map(|server| server.parse().unwrap()));
        assert_eq!(servers_in("search x"), ["127.0.0.1:53".parse().unwrap()]);
    }

    #[test]
    fn name_of_a_question_may_end_with_a_dot() {
        let (id, question) = question("_minecraft._tcp.Play.example.org.").unwrap();
        let reply = reply(&question, RCODE::NoError, &[(0, 0, 7, "a.test")]);
        assert_eq!(read(id, "_minecraft._tcp.play.example.org.", &reply), Some(Some(service("a.test", 7))));
        assert_eq!(read(id, "_minecraft._tcp.other.example.org", &reply), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), cut in 0..80_usize) {
            let (id, question) = question(NAME).unwrap();
            let whole = reply(&question, RCODE::NoError, &[(1, 2, 3, "a.b.test"), (0, 0, 7, "c.test")]);
            let _ = read(id, NAME, &[&id.to_be_bytes()[..], &bytes].concat());
            let _ = read(id, NAME, &[&whole[..whole.len().min(cut)], &bytes].concat());
        }
    }
}
