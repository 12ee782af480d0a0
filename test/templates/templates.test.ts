/** Go's templates. `test/cases/templates.json` has templates with what Go writes, and its error if there is one. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { executeTemplate } from "../../src/templates/execute.ts";
import { builtinFunctions } from "../../src/templates/functions.ts";
import { indentedJson } from "../../src/templates/json.ts";
import { parseTemplate } from "../../src/templates/parse.ts";
import { goTime } from "../../src/templates/time.ts";
import { fromJson, type GoValue } from "../../src/templates/values.ts";

const functions = {
  ...builtinFunctions,
  json: { min: 1, call: ([value = null]: readonly GoValue[]) => indentedJson(value) },
};

function render(text: string, data: GoValue): [string, string?] {
  let written = "";
  try {
    const template = parseTemplate(text, new Set(Object.keys(functions)));
    executeTemplate(template, data, functions, (part) => {
      written += part;
    });
  } catch (error) {
    return [written, error instanceof Error ? error.message : String(error)];
  }
  return [written];
}

const cases = JSON.parse(readFileSync(join(import.meta.dir, "../cases/templates.json"), "utf8")) as [
  template: string,
  output: string,
  error: string | null,
][];

test.each(cases)("%s", (text, output, error) => {
  expect(render(text, null)).toEqual(error === null ? [output] : [output, error]);
});

test.each([
  ["{{.a.b}} {{.a.none}} {{.a.none.x}} {{.list}} {{.n}}", "1.5 <no value> <no value> [x <nil>] <no value>"],
  ["{{range $k, $v := .a}}{{$k}}={{$v}} {{end}}", "10=ten 2=two b=1.5 "],
  ["{{json .a}}", '{\n  "10": "ten",\n  "2": "two",\n  "b": 1.5\n}'],
  ['{{index .a "b"}} {{index .list 0 | len}} {{if index .a "none"}}yes{{end}}', "1.5 1 "],
  ["{{.}}", "map[__proto__:p a:map[10:ten 2:two b:1.5] list:[x <nil>] n:<nil>]"],
  ["{{json .list}} {{.constructor}} {{.__proto__}}", '[\n  "x",\n  null\n] <no value> p'],
])("of JSON: %s", (text, output) => {
  const data = JSON.parse('{"a":{"b":1.5,"10":"ten","2":"two"},"list":["x",null],"n":null,"__proto__":"p"}');
  expect(render(text, fromJson(data))).toEqual([output]);
});

test.each([
  ["2024-02-29T01:02:03.456+02:00", "{{.}}", "2024-02-29 01:02:03.456 +0200 +0200"],
  ["2024-02-29T01:02:03Z", "{{json .}}", '"2024-02-29T01:02:03Z"'],
  [
    "2024-02-29T13:02:03.4Z",
    '{{.Format "Jan 2, 2006 at 3:04pm (MST) .000 .999 002"}}',
    "Feb 29, 2024 at 1:02pm (UTC) .400 .4 060",
  ],
  ["1969-12-31T23:59:59.5Z", "{{.Unix}}", "-1"],
])("the time %s: %s", (time, text, output) => {
  expect(render(text, goTime(time) ?? null)).toEqual([output]);
});

test("a template that calls itself for ever ends", () => {
  const [, error] = render('{{define "r"}}{{template "r" .}}{{end}}{{template "r"}}', null);
  expect(error).toContain("exceeded maximum template depth");
});
