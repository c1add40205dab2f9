//! The acts as MCP tools.

use std::sync::OnceLock;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse,
    Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;

use super::act::Act;
use super::prompt;
use super::service::Service;
use super::session::Session;

/// One connection. The SDK creates one per session, and one per request where there are no sessions.
#[derive(Debug)]
pub(super) struct Tools {
    service: Service,
    session: OnceLock<Session>,
}

impl Tools {
    /// For a connection that may or may not turn out to be a session.
    pub(super) fn new(service: &Service) -> Self {
        Self { service: service.clone(), session: OnceLock::new() }
    }

    /// For a connection that is a session, whatever the protocol version.
    pub(super) fn within(session: Session) -> Self {
        Self { service: session.service().clone(), session: OnceLock::from(session) }
    }

    fn allowed(&self) -> impl Iterator<Item = Act> {
        Act::allowed(&self.service.settings().grants)
    }
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_prompts().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("gleaner", env!("CARGO_PKG_VERSION")).with_title("Gleaner"))
            .with_instructions(prompt::instructions(self.service.settings().patience))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        // The handshake exists only where there are sessions.
        self.session.get_or_init(|| Session::standing(&self.service));
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult { tools: self.allowed().map(Act::tool).collect(), ..ListToolsResult::default() })
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.allowed().find(|act| act.name() == name).map(Act::tool)
    }

    async fn call_tool(&self, request: CallToolRequestParams, _: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let passing;
        let session = match self.session.get() {
            Some(session) => session,
            None => {
                passing = Session::passing(&self.service);
                &passing
            }
        };
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        let result = match session.call(&request.name, arguments).await {
            Ok(reply) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(reply.says)]);
                result.structured_content = Some(reply.value);
                result
            }
            Err(refusal) => {
                let mut result = CallToolResult::error(vec![ContentBlock::text(format!("{}: {}", refusal.code, refusal.says))]);
                result.structured_content = Some(refusal.value());
                result
            }
        };
        Ok(result.into())
    }

    async fn list_prompts(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult { prompts: vec![prompt::prompt()], ..ListPromptsResult::default() })
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, _: RequestContext<RoleServer>) -> Result<GetPromptResponse, ErrorData> {
        if request.name != prompt::NAME {
            return Err(ErrorData::invalid_params(format!("there is one prompt here, {}", prompt::NAME), None));
        }
        let queue = request.arguments.as_ref().and_then(|arguments| arguments.get("queue")).and_then(Value::as_str);
        Ok(prompt::filled(queue).into())
    }
}
