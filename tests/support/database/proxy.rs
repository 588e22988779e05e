//! A TCP proxy between clqd and its database that injects failures.
//!
//! Each connection takes the next plan of a queue; without a plan all data are forwarded.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the proxy does with one connection. Bytes are counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    Pass,
    /// Closes the connection immediately.
    Refuse,
    /// Closes both directions after this many bytes to the database.
    CutUp(usize),
    /// Closes both directions after this many bytes from the database.
    CutDown(usize),
    /// Forwards nothing in either direction after this many bytes to the database, without
    /// closing, for this long. Then the withheld bytes are sent to the database, as a delayed
    /// packet may be.
    StallUp(usize, Duration),
    /// Replaces the first string with the second, of the same length, in data to the database. A
    /// string that is split over two reads from the socket is not replaced.
    AlterUp(&'static [u8], &'static [u8]),
    /// The n-th COMMIT reaches the database and is executed, but its reply is lost with the
    /// connection.
    LoseCommitReply(usize),
}

pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    plans: VecDeque<Plan>,
    bytes_up: usize,
    bytes_down: usize,
    commits: usize,
    connections: usize,
}

/// Traffic of the last connection that ended.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    pub bytes_up: usize,
    pub bytes_down: usize,
    pub commits: usize,
    /// Connections so far.
    pub connections: usize,
}

impl Proxy {
    pub async fn to(database: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let state = shared.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let plan = {
                    let mut shared = state.lock().unwrap();
                    shared.connections += 1;
                    shared.plans.pop_front().unwrap_or(Plan::Pass)
                };
                if plan != Plan::Refuse {
                    tokio::spawn(relay(client, database, plan, state.clone()));
                }
            }
        });
        Proxy { address, shared }
    }

    /// Sets the plans of the next connections.
    pub fn plan(&self, plans: impl IntoIterator<Item = Plan>) {
        self.shared.lock().unwrap().plans = plans.into_iter().collect();
    }

    pub fn traffic(&self) -> Traffic {
        let shared = self.shared.lock().unwrap();
        Traffic {
            bytes_up: shared.bytes_up,
            bytes_down: shared.bytes_down,
            commits: shared.commits,
            connections: shared.connections,
        }
    }

    /// Plans that no connection has taken yet.
    pub fn plans_left(&self) -> usize {
        self.shared.lock().unwrap().plans.len()
    }
}

/// The command packet for `COMMIT`: 7 bytes, sequence 0, COM_QUERY.
const COMMIT: &[u8] = b"\x07\x00\x00\x00\x03COMMIT";

async fn relay(mut client: TcpStream, database: SocketAddr, plan: Plan, shared: Arc<Mutex<Shared>>) {
    let Ok(mut server) = TcpStream::connect(database).await else { return };
    let (mut up, mut down, mut commits) = (0, 0, 0);
    let (mut from_client, mut from_server) = ([0; 16_384], [0; 16_384]);
    let mut drop_reply = false;
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Ok(len @ 1..) = read else { break };
                let bytes = &from_client[..len];
                match plan {
                    Plan::CutUp(at) if up + len > at => {
                        let _ = server.write_all(&bytes[..at - up]).await;
                        break;
                    }
                    Plan::StallUp(at, pause) if up + len > at => {
                        let _ = server.write_all(&bytes[..at - up]).await;
                        tokio::time::sleep(pause).await;
                        let _ = server.write_all(&bytes[at - up..]).await;
                        // Long enough for the database to execute the statement.
                        tokio::time::sleep(Duration::from_millis(300)).await;
                        break;
                    }
                    _ => {}
                }
                up += len;
                if bytes == COMMIT {
                    commits += 1;
                    drop_reply = plan == Plan::LoseCommitReply(commits);
                }
                let forwarded = match plan {
                    Plan::AlterUp(from, to) => replace_all(bytes, from, to),
                    _ => bytes.to_vec(),
                };
                if server.write_all(&forwarded).await.is_err() {
                    break;
                }
            }
            read = server.read(&mut from_server) => {
                let Ok(len @ 1..) = read else { break };
                if drop_reply {
                    break;
                }
                let bytes = &from_server[..len];
                match plan {
                    Plan::CutDown(at) if down + len > at => {
                        let _ = client.write_all(&bytes[..at - down]).await;
                        break;
                    }
                    _ => {}
                }
                down += len;
                if client.write_all(bytes).await.is_err() {
                    break;
                }
            }
        }
    }
    let mut shared = shared.lock().unwrap();
    (shared.bytes_up, shared.bytes_down, shared.commits) = (up, down, commits);
}

fn replace_all(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut replaced = bytes.to_vec();
    for at in 0..bytes.len().saturating_sub(from.len() - 1) {
        if bytes[at..].starts_with(from) {
            replaced[at..at + to.len()].copy_from_slice(to);
        }
    }
    replaced
}
