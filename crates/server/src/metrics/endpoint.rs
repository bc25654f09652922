//! `GET /metrics`: as much HTTP as a scraper needs.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::Metrics;

/// The largest request for metrics that is read, in bytes.
const REQUEST_BYTES_MAX: u64 = 8 << 10;

/// So many are answered at a time, each within this time.
const CONNECTIONS_MAX: usize = 8;
const TIMEOUT: Duration = Duration::from_secs(2);

/// Answers every request with the counters: HTTP enough for a scraper.
pub(crate) async fn serve(listener: TcpListener, metrics: Arc<Metrics>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // Others wait in the system's queue, where they take no descriptors from clients.
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let metrics = metrics.clone();
        tokio::spawn(tokio::time::timeout(TIMEOUT, async move {
            let _place = place;
            let mut request = Vec::new();
            let (read, mut write) = stream.split();
            let mut read = read.take(REQUEST_BYTES_MAX);
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                if read.read_buf(&mut request).await? == 0 {
                    break;
                }
            }
            let found = request.starts_with(b"GET /metrics");
            let (status, body) =
                if found { ("200 OK", metrics.render()) } else { ("404 Not Found", String::new()) };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            write.write_all(head.as_bytes()).await?;
            write.write_all(body.as_bytes()).await
        }));
    }
}
