//! `GET /metrics`: as much HTTP as a scraper needs.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::Metrics;

/// The largest request that is read.
const REQUEST_BYTES_MAX: u64 = 8 << 10;
/// Requests that are answered at a time.
const CONNECTIONS_MAX: usize = 8;
/// How long a request and its answer may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Answers requests with the counters, until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, metrics: Arc<Metrics>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // Wait before accepting: in the kernel's queue, connections use no file descriptors.
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let metrics = metrics.clone();
        tokio::spawn(tokio::time::timeout(TIMEOUT, async move {
            let _slot = slot;
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
                "HTTP/1.1 {status}\r\n\
                 Content-Type: text/plain; version=0.0.4\r\n\
                 Content-Length: {}\r\n\
                 Connection: close\r\n\r\n",
                body.len()
            );
            write.write_all(head.as_bytes()).await?;
            write.write_all(body.as_bytes()).await
        }));
    }
}
