//! TypeScript that is more than annotations, turned into JavaScript by the full transformer.

use oxc_allocator::Allocator;
use oxc_codegen::Codegen;
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{TransformOptions, Transformer};
use std::path::Path;

/// The same program without TypeScript. Fails only if the transformer does.
pub(super) fn to_javascript(text: &str) -> Result<String, String> {
    let allocator = Allocator::default();
    let mut program = super::parse_as(&allocator, text, SourceType::ts()).program;
    let semantic =
        SemanticBuilder::new().with_excess_capacity(2.0).with_enum_eval(true).build(&program);
    let options = TransformOptions::default();
    let scoping = semantic.semantic.into_scoping();
    let transformed = Transformer::new(&allocator, Path::new("program.ts"), &options)
        .build_with_scoping(scoping, &mut program);
    match transformed.diagnostics.iter().next() {
        Some(first) => Err(first.message.to_string()),
        None => Ok(Codegen::new().build(&program).code),
    }
}
