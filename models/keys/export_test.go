package keys

// WaitingRefusals is the number of refused requests that wait for a flush.
func (k *Keys) WaitingRefusals() int { return k.refusals.all }
