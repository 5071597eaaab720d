//! The client over tonic.

use std::io::{BufRead, stdin};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use http::uri::PathAndQuery;
use spandrel_measure::Times;
use spandrel_measure::histogram::Histogram;
use tokio::runtime::Runtime;
use tonic::Request;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// The upper limit of recorded times in nanoseconds.
const SLOWEST: u64 = 60_000_000_000;

/// The connections of the tasks that call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sharing {
    /// All tasks share one connection.
    One,
    /// Each task has a connection of its own.
    Each,
}

pub(crate) fn run(port: u16, sharing: Sharing) -> Result<()> {
    let runtime = Runtime::new()?;
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))?.tcp_nodelay(true);
    let mut clients = vec![Grpc::new(runtime.block_on(endpoint.connect())?)];
    runtime.block_on(call(&mut clients[0]))?;
    println!("ready");
    for line in stdin().lock().lines() {
        let line = line?;
        let (number, millis) = line.trim().split_once(' ').context("not a number and a time")?;
        let (tasks, time) = (number.parse::<usize>()?.max(1), Duration::from_millis(millis.parse()?));
        if sharing == Sharing::Each {
            clients.truncate(tasks);
            while clients.len() < tasks {
                clients.push(Grpc::new(runtime.block_on(endpoint.connect())?));
            }
        }
        println!("{}", runtime.block_on(measure(&clients, tasks, time))?);
    }
    Ok(())
}

async fn call(client: &mut Grpc<Channel>) -> Result<()> {
    client.ready().await?;
    client.unary(Request::new(()), PathAndQuery::from_static(crate::PATH), ProstCodec::<(), ()>::default()).await?;
    Ok(())
}

/// So many tasks make one call after the other; returns what they have measured as JSON.
async fn measure(clients: &[Grpc<Channel>], tasks: usize, time: Duration) -> Result<String> {
    let start = Instant::now();
    let end = start + time;
    let spawn = |task: usize| {
        let mut client = clients[task % clients.len()].clone();
        tokio::spawn(async move {
            let mut nanos = Vec::new();
            let mut before = Instant::now();
            while before < end {
                call(&mut client).await?;
                let now = Instant::now();
                nanos.push((now - before).as_nanos() as u64);
                before = now;
            }
            anyhow::Ok((nanos, before))
        })
    };
    let tasks: Vec<_> = (0..tasks).map(spawn).collect();
    let (mut histogram, mut last) = (Histogram::new(SLOWEST), start);
    let mut calls_of_each = Vec::new();
    for task in tasks {
        let (nanos, until) = task.await??;
        calls_of_each.push(nanos.len());
        nanos.into_iter().for_each(|time| histogram.record(time));
        last = last.max(until);
    }
    let times = Times::of(&histogram, Duration::from_nanos(1)).unwrap_or_default();
    let seconds = (last - start).as_secs_f64();
    let (calls, Times { min, median, p90, p99, p999, max, mean }) = (histogram.count(), times);
    calls_of_each.sort_unstable();
    let fairness = match calls_of_each[..] {
        [slowest, _, ..] if clients.len() > 1 => {
            format!("\"fairness\":{},", slowest as f64 / calls_of_each[calls_of_each.len() / 2].max(1) as f64)
        }
        _ => String::new(),
    };
    Ok(format!(
        "{{{fairness}\"seconds\":{seconds},\"calls\":{calls},\"min_ns\":{min},\"median_ns\":{median},\"p90_ns\":{p90},\
         \"p99_ns\":{p99},\"p999_ns\":{p999},\"max_ns\":{max},\"mean_ns\":{mean}}}"
    ))
}
