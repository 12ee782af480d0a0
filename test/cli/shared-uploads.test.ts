/** Contents are sent to a service once, although several stages need them at the same time. */
import { expect, test } from "bun:test";
import { boughOn } from "../fake-service/bough-on.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const dockerfile = `FROM base:1 AS shared
COPY files /files
COPY <<END /document
text
END
FROM shared AS one
RUN first
FROM shared AS two
RUN second
FROM base:1
COPY --from=one /out /one
COPY --from=two /out /two
RUN last
`;

test("two stages that start from files that no RUN has put in place send each content once", async () => {
  const service = await startFakeService();
  try {
    service.state.addImage("base:1");
    service.state.tree.set("/out", { type: "directory" });
    const context = temporaryDirectory();
    const files = Array.from({ length: 300 }, (_, index) => [`files/${index}`, `content ${index}\n`]);
    writeFiles(context, { Dockerfile: dockerfile, ...Object.fromEntries(files) });
    const state = temporaryDirectory();
    const build = await boughOn(service, ["build", ".", "--docker"], { context, state });
    expect(build).toMatchObject({ exitCode: 0 });
    expect(service.requestsTo("POST /v1/files")).toHaveLength(301);
  } finally {
    await service.close();
  }
});
