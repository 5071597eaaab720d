//! The server.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::io::{BufRead, stdin};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Result;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower_service::Service;

pub(crate) fn run(micros: u64) -> Result<()> {
    let runtime = Runtime::new()?;
    let calls = Arc::new(AtomicU64::new(0));
    let service = Ping { calls: Arc::clone(&calls), work: Duration::from_micros(micros) };
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    println!("{}", listener.local_addr()?.port());
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    runtime.spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
    for line in stdin().lock().lines() {
        line?;
        println!("{}", calls.load(Ordering::Relaxed));
    }
    Ok(())
}

/// The service, as tonic's generator would write it.
#[derive(Clone, Debug)]
struct Ping {
    calls: Arc<AtomicU64>,
    work: Duration,
}

impl NamedService for Ping {
    const NAME: &'static str = "calls.Ping";
}

impl Service<http::Request<Body>> for Ping {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = self.clone();
        Box::pin(async move { Ok(Grpc::new(ProstCodec::<(), ()>::default()).unary(method, request).await) })
    }
}

impl UnaryService<()> for Ping {
    type Response = ();
    type Future = Ready<Result<Response<()>, Status>>;

    fn call(&mut self, _: Request<()>) -> Self::Future {
        compute(self.work);
        self.calls.fetch_add(1, Ordering::Relaxed);
        ready(Ok(Response::new(())))
    }
}

/// Computes for about that time; nothing else runs in this thread meanwhile.
fn compute(work: Duration) {
    let start = std::time::Instant::now();
    while !work.is_zero() && start.elapsed() < work {
        std::hint::spin_loop();
    }
}
