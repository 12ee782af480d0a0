/** What options with fields mean: the text of a command line, and that text or an object in a bake file, make the same data. */
import { describe, expect, test } from "bun:test";
import { readEntries, type TargetAgent, type TargetSecret } from "../../src/cli/bake/entries.ts";
import { agentOf, parseAgent } from "../../src/cli/entries/agent.ts";
import { contextOf, parseContext } from "../../src/cli/entries/context.ts";
import { parseSecret, secretOf } from "../../src/cli/entries/secret.ts";

function inBakeFile<Fields>(field: string, value: unknown): Fields {
  const [entry] = readEntries(field, [value], { file: "docker-bake.json", path: [] });
  return entry as Fields;
}

describe("--secret", () => {
  test.each([
    ["id=token", { id: "token" }, { id: "token", kind: "by-id" }],
    ["id=token,src=a.txt", { id: "token", src: "a.txt" }, { id: "token", kind: "file", path: "a.txt" }],
    ["id=token,source=a.txt", { id: "token", source: "a.txt" }, { id: "token", kind: "file", path: "a.txt" }],
    [
      'id=token,"src=a,b.txt"',
      { id: "token", src: "a,b.txt" },
      { id: "token", kind: "file", path: "a,b.txt" },
    ],
    ["id=token,env=TOKEN", { id: "token", env: "TOKEN" }, { id: "token", kind: "variable", name: "TOKEN" }],
    [
      "type=env,id=token,src=TOKEN",
      { type: "env", id: "token", src: "TOKEN" },
      { id: "token", kind: "variable", name: "TOKEN" },
    ],
  ])("%s", (text, object, entry) => {
    expect(parseSecret(text)).toEqual(entry as ReturnType<typeof parseSecret>);
    for (const value of [text, object])
      expect(secretOf(inBakeFile<TargetSecret>("secret", value))).toEqual(parseSecret(text));
  });
});

describe("--ssh", () => {
  test.each([
    ["default", { id: "default" }, { id: "default", paths: [] }],
    ["default=", { id: "default", paths: [""] }, { id: "default", paths: [] }],
    ["git=agent.sock", { id: "git", paths: ["agent.sock"] }, { id: "git", paths: ["agent.sock"] }],
    ["git=a.key,b.key", { id: "git", paths: ["a.key", "b.key"] }, { id: "git", paths: ["a.key", "b.key"] }],
  ])("%s", (text, object, entry) => {
    expect(parseAgent(text)).toEqual(entry);
    for (const value of [text, object]) expect(agentOf(inBakeFile<TargetAgent>("ssh", value))).toEqual(entry);
  });

  test("an object's path may have a comma", () => {
    expect(agentOf(inBakeFile<TargetAgent>("ssh", { paths: ["keys,old/id"] }))).toEqual({
      id: "default",
      paths: ["keys,old/id"],
    });
  });
});

describe("--build-context", () => {
  test.each([
    ["lib=../lib", { name: "lib", kind: "place", text: "../lib" }],
    [
      "lib=https://host.invalid/a.tar?x=y",
      { name: "lib", kind: "place", text: "https://host.invalid/a.tar?x=y" },
    ],
    [
      "base=docker-image://alpine:3",
      { name: "base", kind: "image", reference: "alpine:3", text: "docker-image://alpine:3" },
    ],
    [
      "base=oci-layout://a/b:1",
      { name: "base", kind: "layout", image: { path: "a/b", tag: "1" }, text: "oci-layout://a/b:1" },
    ],
  ])("%s", (text, entry) => {
    const at = text.indexOf("=");
    expect(parseContext(text)).toEqual(entry as ReturnType<typeof parseContext>);
    expect(contextOf(text.slice(0, at), text.slice(at + 1))).toEqual(parseContext(text));
  });
});
