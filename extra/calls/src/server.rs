//! The server over tonic.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

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

use crate::Calls;

pub(crate) fn run(calls: Calls) -> Result<()> {
    let runtime = Runtime::new()?;
    let calls = Arc::new(calls);
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    println!("{}", listener.local_addr()?.port());
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let service = Ping(Arc::clone(&calls));
    runtime.spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
    calls.answer_parent()
}

/// The service, as tonic's generator would write it.
#[derive(Clone, Debug)]
struct Ping(Arc<Calls>);

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
        self.0.call();
        ready(Ok(Response::new(())))
    }
}
