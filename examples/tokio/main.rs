//! A server and a client in a program that uses tokio: the runtime polls the asynchronous servants, which may
//! use its timers and sockets.

use std::time::Duration;

use spandrel::{Orb, Poa};
use tokio::{
    runtime::{Handle, Runtime},
    task, time,
};

spandrel::include_idl!("weather");
use weather::{NoSuchPlace, Station, StationAsyncServant, StationAsyncSkeleton, station::TemperatureError};

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

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    // The spawner is called by threads of the ORB, outside of the runtime: there `tokio::spawn` would panic.
    let runtime = Handle::current();
    let server = Orb::builder().spawner(move |task| drop(runtime.spawn(task))).build()?;
    let sensor = Poa::root(&server)?.activate(StationAsyncSkeleton::new(Sensor))?;

    let client = Orb::init(std::env::args())?;
    let station = Station::narrow_async(&client.string_to_object(&sensor.to_string())?).await?;
    println!("here: {}", station.temperature_async("here").await?);

    // Waits for running requests, which need the other threads of the runtime.
    task::spawn_blocking(move || client.shutdown().and_then(|()| server.shutdown())).await??;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    Runtime::new()?.block_on(run())
}
