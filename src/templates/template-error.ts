/** A template that does not parse, or that does not suit its data, in Go's words: `template: :1:2: executing "" at <.Foo>: ...`. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
}
