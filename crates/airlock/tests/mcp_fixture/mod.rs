//! The tools, resources and prompts that the conformance suites call, with fixed names that no product has. They
//! replace our own handler behind the same HTTP layer.

mod needed;
mod tools;

use rmcp::ServerHandler;
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

/// A picture of one pixel.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// The suite's server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixture;

/// Converts a value into one of rmcp's types.
pub(crate) fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

#[expect(deprecated, reason = "older revisions have logging, subscriptions and sampling")]
impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = json!({
            "tools": {}, "resources": { "subscribe": true }, "prompts": {}, "completions": {}, "logging": {},
        });
        ServerConfig::new(read(capabilities)).with_server_info(Implementation::new("fixture", "1"))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name.starts_with("test_input_required") {
            return needed::call(&request, &context);
        }
        tools::call(&request, &context).await.map(Into::into)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = |uri: &str, name: &str, mime: &str| {
            Resource::new(uri, name).with_description(name).with_mime_type(mime)
        };
        Ok(ListResourcesResult::with_all_items(vec![
            resource("test://static-text", "a text", "text/plain"),
            resource("test://static-binary", "a picture", "image/png"),
            resource("test://watched-resource", "a watched text", "text/plain"),
        ]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("test://template/{id}/data", "data")
            .with_description("data by id")
            .with_mime_type("application/json");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri.as_str(), id) {
            (_, Some(id)) => {
                let data =
                    json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() })
            }
            ("test://static-text", _) => {
                json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
            }
            ("test://watched-resource", _) => {
                json!({ "uri": uri, "mimeType": "text/plain", "text": "watched" })
            }
            ("test://static-binary", _) => {
                json!({ "uri": uri, "mimeType": "image/png", "blob": PNG })
            }
            _ => {
                let data = json!({ "uri": uri });
                return Err(ErrorData::resource_not_found("Resource not found", Some(data)));
            }
        };
        Ok(ReadResourceResult::new(vec![read(contents)]).into())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match context.protocol_version() {
            // In the newest revision, each request names a level instead.
            Some(version) if version >= ProtocolVersion::V_2026_07_28 => {
                Err(ErrorData::method_not_found::<SetLevelRequestMethod>())
            }
            _ => Ok(()),
        }
    }

    fn accepted_subscription_filter(
        &self,
        wanted: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(wanted.clone())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(read(
            json!({ "resultType": "complete", "completion": { "values": ["paris", "park", "party"], "total": 3, "hasMore": false } }),
        ))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = |name: &str| json!({ "name": name, "description": name, "required": true });
        let prompts = json!([
            { "name": "test_simple_prompt", "description": "simple" },
            { "name": "test_prompt_with_arguments", "description": "with arguments", "arguments": [argument("arg1"), argument("arg2")] },
            { "name": "test_prompt_with_embedded_resource", "description": "with a resource", "arguments": [argument("resourceUri")] },
            { "name": "test_prompt_with_image", "description": "with a picture" },
            { "name": "test_input_required_result_prompt", "description": "asks first" },
        ]);
        Ok(ListPromptsResult::with_all_items(read(prompts)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let said = |content: Value| json!({ "role": "user", "content": content });
        let text = |text: &str| said(json!({ "type": "text", "text": text }));
        let args = Value::Object(request.arguments.unwrap_or_default());
        let messages = match request.name.as_str() {
            "test_simple_prompt" => json!([text("This is a simple prompt for testing.")]),
            "test_prompt_with_arguments" => {
                let (one, two) = (args["arg1"].as_str(), args["arg2"].as_str());
                let (one, two) = (one.unwrap_or_default(), two.unwrap_or_default());
                json!([text(&format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))])
            }
            "test_prompt_with_embedded_resource" => json!([
                said(
                    json!({ "type": "resource", "resource": { "uri": args["resourceUri"], "mimeType": "text/plain",
                    "text": "Embedded resource content for testing." } })
                ),
                text("Please process the embedded resource above."),
            ]),
            "test_prompt_with_image" => json!([
                said(json!({ "type": "image", "data": PNG, "mimeType": "image/png" })),
                text("Please analyze the image above."),
            ]),
            "test_input_required_result_prompt" => match request.input_responses {
                Some(responses) if responses.contains_key("user_context") => {
                    json!([text(&responses["user_context"].to_string())])
                }
                _ => return Ok(needed::prompt().into()),
            },
            other => return Err(ErrorData::invalid_params(format!("no prompt {other}"), None)),
        };
        Ok(read::<GetPromptResult>(json!({ "resultType": "complete", "messages": messages }))
            .into())
    }
}
