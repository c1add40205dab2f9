//! The time from the commit of an insert until a subscriber has the event.

use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;

use super::subscribers::Subscriber;
use crate::report::Report;
use crate::serving::Serving;
use crate::stage::Stage;

pub(super) async fn measure(stage: &Stage, report: &mut Report, serving: &Serving) -> Result<()> {
    stage.clear().await?;
    let mut subscriber = Subscriber::join(&serving.address, &serving.key).await?;
    let writer = stage.connect().await?;
    let insert =
        writer.prepare("insert into activities (type, raw_data) values ('sms', '{\"source_type\": \"text\", \"content\": \"x\"}')").await?;
    let mut latency = Histogram::<u64>::new(3)?;
    for i in 0..if stage.quick { 200 } else { 1000 } {
        writer.execute(&insert, &[]).await?;
        let committed = Instant::now();
        subscriber.expect("postgres_changes").await?;
        latency.record(u64::try_from(committed.elapsed().as_micros())?)?;
        // Irregular, so that it does not align with any interval.
        tokio::time::sleep(Duration::from_micros(20_000 + (i * 7919) % 20_000)).await;
    }
    report.figure("insert to event over WebSocket p50", latency.value_at_quantile(0.5) as f64 / 1000.0, "ms");
    report.figure("insert to event over WebSocket p99", latency.value_at_quantile(0.99) as f64 / 1000.0, "ms");
    Ok(())
}
