//! A TCP relay that can be cut, like a network: bytes wait, and neither side gets an error.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct Relay {
    pub address: SocketAddr,
    is_cut: watch::Sender<bool>,
}

impl Relay {
    /// Relays connections of an address of its own to a program, which need not be there yet.
    pub async fn to(target: SocketAddr) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (is_cut, cut) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, target, cut.clone()));
            }
        });
        Relay { address, is_cut }
    }

    pub fn set_cut(&self, is_cut: bool) {
        self.is_cut.send_replace(is_cut);
    }

    /// Cuts relays for a time.
    pub fn cut_for(relays: &[&Relay], time: Duration) {
        relays.iter().for_each(|relay| relay.set_cut(true));
        std::thread::sleep(time);
        relays.iter().for_each(|relay| relay.set_cut(false));
    }
}

async fn relay(client: TcpStream, target: SocketAddr, mut cut: watch::Receiver<bool>) {
    mended(&mut cut).await;
    let Ok(server) = TcpStream::connect(target).await else { return };
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let mut cut_back = cut.clone();
    tokio::select! {
        () = copy(&mut from_client, &mut to_server, &mut cut) => {}
        () = copy(&mut from_server, &mut to_client, &mut cut_back) => {}
    }
}

async fn mended(cut: &mut watch::Receiver<bool>) {
    _ = cut.wait_for(|is_cut| !is_cut).await;
}

async fn copy(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    cut: &mut watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let Ok(count @ 1..) = from.read(&mut bytes).await else { return mended(cut).await };
        mended(cut).await;
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
