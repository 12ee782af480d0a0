/**
 * Ids that a service gives. bough suggests commands with them and uses them in addresses, so it takes none that a shell would
 * change, that another command would take for an option, or that leads to another address.
 */
import { expect, test } from "bun:test";
import { runBough, temporaryDirectory } from "../../support/bough.ts";

/** Returns what bough shows of a service whose ids are all `id`. */
async function shownOf(id: string) {
  const operation = { uuid: id, id, status: "SUCCESS", image_uuid: id, result: { image: id } };
  const requests: string[] = [];
  await using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    fetch(request) {
      const { pathname } = new URL(request.url);
      requests.push(pathname);
      if (pathname.includes("/images")) return Response.json({ images: [{ uuid: id, tag: "base:1" }] });
      if (pathname.includes("/operations")) return Response.json([operation]);
      return Response.json(operation, { status: 201 });
    },
  });
  const run = (...words: string[]) =>
    runBough(["--url", server.url.origin, "--token", "token", ...words], {
      workingDirectory: "/",
      environment: { BOUGH_HOME: temporaryDirectory() },
    });
  const ended = [await run("images", "-q"), await run("ps", "-aq"), await run("run", "-D", "--", "true")];
  return { requests, text: ended.map(({ stdout, stderr }) => stdout + stderr).join("") };
}

test.each([
  ...["$(reboot)", "`reboot`", "a;reboot", "a|sh", "a b", "--all", "..", "*", "~&", "#a"].map((id) => [
    id,
    id,
  ]),
  ["one of 257 characters", "x".repeat(257)],
])("%s is none", async (_, id) => {
  const { text, requests } = await shownOf(id);
  expect(text).not.toContain(id);
  expect(requests.join("\n")).not.toContain(encodeURIComponent(id));
});

test.each([
  "5a2c3d38-8a77-4d7f-a6a5-d2f7a5b0f0c9",
  "17",
  "img_1",
  "-V1StGXR8_Z5jd",
  "sha256:0a",
  "ab+/=",
  "a/b@1",
])("%s is one", async (id) => {
  expect((await shownOf(id)).text).toContain(id);
});
