export function formatLayers(count: number): string {
  return count === 1 ? "1 layer" : `${count} layers`;
}
