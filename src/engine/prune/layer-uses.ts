import type { Inventory, StoredImage } from "./inventory.ts";

/** Tracks which layers are still in use while images are removed one by one. */
export class LayerUses {
  readonly #parents: Map<number, number | null>;
  /** The number of images and layers directly on top of each layer. */
  readonly #counts = new Map<number, number>();
  readonly #unused: number[] = [];
  readonly #unusedSet = new Set<number>();

  constructor({ layers, images }: Pick<Inventory, "layers" | "images">) {
    this.#parents = new Map(layers.map(({ id, parent }) => [id, parent]));
    for (const { layer } of images) this.#count(layer, 1);
    for (const { parent } of layers) if (parent !== null) this.#count(parent, 1);
    // The uppermost come first: an unused layer takes along parents that only it needs.
    for (const { id } of layers) if (!this.isUnused(id) && this.#of(id) === 0) this.#drop(id);
  }

  /** Removes an image, and returns the layers that become unused. */
  remove({ layer }: StoredImage): number[] {
    const before = this.#unused.length;
    if (this.#count(layer, -1) === 0) this.#drop(layer);
    return this.#unused.slice(before);
  }

  /** True if nothing but these images, which share one layer, is directly on top of that layer. */
  isOnlyOf(images: readonly StoredImage[]): boolean {
    return this.#of(images[0]?.layer ?? 0) <= images.length;
  }

  isUnused(id: number): boolean {
    return this.#unusedSet.has(id);
  }

  unused(): readonly number[] {
    return this.#unused;
  }

  uppermostFirst<Image extends StoredImage>(images: readonly Image[]): Image[] {
    const order = new Map([...this.#parents.keys()].map((id, index) => [id, index]));
    return images.toSorted((one, other) => (order.get(one.layer) ?? 0) - (order.get(other.layer) ?? 0));
  }

  #of(id: number): number {
    return this.#counts.get(id) ?? 0;
  }

  #count(id: number, by: number): number {
    const count = this.#of(id) + by;
    this.#counts.set(id, count);
    return count;
  }

  #drop(top: number): void {
    for (let id: number | null = top; id !== null && this.#parents.has(id); ) {
      this.#unused.push(id);
      this.#unusedSet.add(id);
      const parent: number | null = this.#parents.get(id) ?? null;
      if (parent === null || this.#count(parent, -1) > 0) return;
      id = parent;
    }
  }
}
