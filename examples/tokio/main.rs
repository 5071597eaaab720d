//! A server and a client in a program that uses tokio: the runtime polls the asynchronous servants, which may
//! use its timers and sockets.

use std::time::Duration;

use spandrel::{Orb, Poa, policy::ReferencePolicies};
use tokio::{
    runtime::{Handle, Runtime},
    time,
};

spandrel::include_idl!("weather");
use weather::{NoSuchPlace, Station, StationAsyncServant, station::TemperatureError};

// ANCHOR: servant
struct Sensor;

impl StationAsyncServant for Sensor {
    async fn temperature(&self, place: &str) -> Result<f64, TemperatureError> {
        if place != "here" {
            return Err(NoSuchPlace { place: place.to_owned() }.into());
        }
        // A timer of the runtime, which works only in its own tasks.
        time::sleep(Duration::from_millis(10)).await;
        Ok(20.5)
    }
}
// ANCHOR_END: servant

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    // ANCHOR: server
    // The spawner is called by threads of the ORB, outside of the runtime: there `tokio::spawn` would panic.
    let runtime = Handle::current();
    let server = Orb::builder().spawner(move |task| drop(runtime.spawn(task))).build()?;
    let sensor: Station = Poa::root(&server)?.serve_async(Sensor)?;
    // ANCHOR_END: server

    let reference = sensor.to_string();
    // ANCHOR: client
    let client = Orb::init(std::env::args())?;
    let object = client.string_to_object_async(&reference).await?;
    let station = object.narrow_async::<Station>().await?;
    println!("here: {}", station.temperature_async("here").await?);
    // ANCHOR_END: client

    // ANCHOR: several
    let (here, there) = tokio::join!(station.temperature_async("here"), station.temperature_async("there"));
    println!("together: {}, {}", here.is_ok(), there.is_ok());
    // ANCHOR_END: several

    // ANCHOR: limit
    let hurried = station.with_timeout(Duration::from_millis(1));
    let late = hurried.temperature_async("here").await; // the ORB's limit, which the server sees, too
    let dropped = time::timeout(Duration::from_millis(1), station.temperature_async("here")).await; // tokio's
    println!("in time: {}, {}", late.is_ok(), dropped.is_ok());
    // ANCHOR_END: limit

    // ANCHOR: shutdown
    client.shutdown_async().await?;
    server.shutdown_async().await?;
    // ANCHOR_END: shutdown
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    Runtime::new()?.block_on(run())
}
