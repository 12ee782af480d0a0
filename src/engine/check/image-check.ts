import { parseObject } from "../records/json-column.ts";
import { layerChain } from "../records/layers.ts";
import { add, type CheckRun } from "./report.ts";

/** Checks the records of images and tags, and adds to each damaged layer the images that are built on it. */
export function checkImages(run: Omit<CheckRun, "pace">): void {
  const { database, report } = run;
  const layers = new Map(
    report.damage.flatMap((damage) =>
      damage.kind === "layer" ? [[Number.parseInt(damage.name, 36), damage]] : [],
    ),
  );
  const images = database
    .query<{ uuid: string; layer: number; config: string }, []>("SELECT uuid, layer, config FROM images")
    .all();
  const tags = database.query<{ tag: string }, [string]>("SELECT tag FROM tags WHERE image = ? ORDER BY tag");
  for (const { uuid, layer, config } of images) {
    report.images++;
    const chain = layerChain(database, layer);
    const found = chain.map((id) => layers.get(id)).filter((damage) => damage !== undefined);
    if (chain.length === 0 || parseObject(config) === undefined) {
      const problem = chain.length === 0 ? "its layer has no record" : "its record is damaged";
      found.push(add(run, { kind: "image", name: uuid, problem }));
    }
    for (const damage of found) {
      damage.images.push(uuid);
      damage.tags.push(...tags.all(uuid).map(({ tag }) => tag));
    }
  }
  const lost = database
    .query<{ tag: string; image: string }, []>(
      "SELECT tag, image FROM tags WHERE image NOT IN (SELECT uuid FROM images)",
    )
    .all();
  for (const { tag, image } of lost)
    add(run, { kind: "tag", name: tag, problem: `there is no image ${image}` }).tags.push(tag);
}
