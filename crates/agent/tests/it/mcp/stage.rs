//! A migrated database, a server in front of it, and assistants that connect to it.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use gleaner::transport::Direct;
use gleaner::{Claim, Item, Queue};
use gleaner_agent::mcp::{self, Backend, DirectBackend, Guard, Service, Settings, WireBackend};
use gleaner_agent::wire::{Protocol, Wire};
use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::Value;
use tokio_postgres::Client;

use crate::conformance::stage::{self as conformance, Over};

pub(crate) const TOKEN: &str = "a token of this test";

pub(crate) struct Stage {
    pub client: Client,
    pub service: Service,
    pub base: String,
    queue: Queue,
    /// The database, and the server in front of it if there is one.
    below: conformance::Stage,
}

pub(crate) type Assistant = RunningService<RoleClient, ()>;

/// Without any grants.
pub(crate) async fn stage() -> Result<Stage> {
    Stage::with(Settings::default()).await
}

impl Stage {
    pub(crate) async fn with(settings: Settings) -> Result<Self> {
        Self::over(Over::Direct, settings).await
    }

    /// With direct access to the database, or through a server.
    pub(crate) async fn over(over: Over, settings: Settings) -> Result<Self> {
        // The client is built without a crypto provider. The first caller installs one for all.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let below = conformance::stage(over).await?;
        let direct = Direct::new(below.world.url(), 8)?;
        let queue = Queue::open(direct.pool(), "jobs").await?;
        let backend: Arc<dyn Backend> = match &below.served {
            None => Arc::new(DirectBackend::new(direct)),
            Some(served) => {
                let way = if over == Over::Rpc { Protocol::Rpc } else { Protocol::Native };
                Arc::new(WireBackend::new(Wire::connect_by(served.settings(), way)?))
            }
        };
        let service = Service::new(backend, settings);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}", listener.local_addr()?);
        let guard = Guard::new(TOKEN);
        let router = mcp::router(&service, guard.clone()).merge(gleaner_agent::a2a::router(&service, guard));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { client: gleaner::connect(below.world.url()).await?, service, base, queue, below })
    }

    /// An assistant that does the initialize handshake and therefore has a session.
    pub(crate) async fn assistant(&self) -> Result<Assistant> {
        Ok(().serve(self.transport()).await?)
    }

    /// An assistant with the protocol version that has no sessions.
    pub(crate) async fn sessionless(&self) -> Result<Assistant> {
        let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        Ok(().serve_with_lifecycle(self.transport(), mode).await?)
    }

    fn transport(&self) -> StreamableHttpClientTransport<reqwest::Client> {
        let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", self.base)).auth_header(TOKEN);
        StreamableHttpClientTransport::with_client(reqwest::Client::new(), config)
    }

    /// Enqueues a job in the built-in queue and returns its key.
    pub(crate) async fn job(&self, kind: &str, payload: Value) -> Result<String> {
        let enqueued = self.queue.enqueue(&[serde_json::json!({"kind": kind, "payload": payload})]).await?;
        Ok(enqueued[0].key.clone())
    }

    /// The jobs that an ordinary agent can claim now.
    pub(crate) async fn other_agent(&self) -> Result<Vec<Item>> {
        Ok(self.queue.claim(&Claim::by("another agent").limit(10)).await?.items)
    }

    pub(crate) fn url(&self) -> String {
        self.below.world.url().to_owned()
    }

    pub(crate) async fn queue(&self, name: &str) -> Result<Queue> {
        Ok(Queue::open(self.queue.pool(), name).await?)
    }

    pub(crate) fn jobs(&self) -> &Queue {
        &self.queue
    }

    /// Moves the times of every job into the past.
    pub(crate) async fn age(&self, interval: &str) -> Result<()> {
        self.run(&format!(
            "begin; set local role gleaner_engine;
             update gleaner.jobs set due_at = due_at - interval '{interval}', deadline_at = deadline_at - interval '{interval}'; commit"
        ))
        .await
    }

    pub(crate) async fn run(&self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.with_context(|| sql.to_owned())
    }

    /// The first value of a query, as text. Empty for null and for no row.
    pub(crate) async fn text(&self, sql: &str) -> Result<String> {
        let row = self.client.query_opt(&format!("select ({sql})::text"), &[]).await.with_context(|| sql.to_owned())?;
        Ok(row.and_then(|row| row.get(0)).unwrap_or_default())
    }
}

/// Calls a tool.
pub(crate) async fn call(assistant: &Assistant, tool: &'static str, arguments: Value) -> Result<CallToolResult> {
    let Value::Object(arguments) = arguments else { anyhow::bail!("arguments are an object") };
    Ok(assistant.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await?)
}

/// Calls a tool that must not refuse, and returns the fields of its answer.
pub(crate) async fn done(assistant: &Assistant, tool: &'static str, arguments: Value) -> Result<Value> {
    let result = call(assistant, tool, arguments).await?;
    anyhow::ensure!(result.is_error != Some(true), "{tool} was refused: {}", said(&result));
    result.structured_content.context("structured content")
}

/// Calls a tool that must refuse, and returns the code and the sentence of the refusal.
pub(crate) async fn refused(assistant: &Assistant, tool: &'static str, arguments: Value) -> Result<(String, String)> {
    let result = call(assistant, tool, arguments).await?;
    anyhow::ensure!(result.is_error == Some(true), "{tool} was not refused: {}", said(&result));
    let error = &result.structured_content.as_ref().context("structured content")?["error"];
    let text = |field: &str| error[field].as_str().map(str::to_owned).with_context(|| error.to_string());
    anyhow::ensure!(said(&result).contains(&text("message")?), "a model that reads text alone must hear it too");
    Ok((text("code")?, text("message")?))
}

/// The text that a model reads.
pub(crate) fn said(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.clone()).collect::<Vec<_>>().join("\n")
}
